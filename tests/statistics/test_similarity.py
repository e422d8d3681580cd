from math import sqrt

import pytest
import torch

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.statistics.similarity import Similarity
from tests.batches import build_maps

SAME = [[0.5, 0.1], [0.3, 0.2]]


def two_models(left, right, **options):
    """Return a batch of the maps of two models."""
    maps = {
        (role, "raw"): build_maps([torch.as_tensor(weights).view(1, -1, 2, 2)], [["noun", "verb"]], **options)
        for role, weights in (("model", left), ("against", right))
    }
    return Batch(maps["model", "raw"].examples, maps, "raw")


def test_the_same_head_of_two_models_is_compared():
    assert Similarity().values(two_models(SAME, SAME))["similarity"].item() == pytest.approx(1)
    assert Similarity().values(two_models([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]))["similarity"].item() == 0


def test_padding_counts_only_on_request():
    batch = two_models([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], width=3)
    batch.maps["against", "raw"].parts[0][..., 0, 2] = sqrt(2)
    assert Similarity().values(batch)["similarity"].item() == pytest.approx(1)
    assert Similarity(padded=True).values(batch)["similarity"].item() == pytest.approx(1 / sqrt(2))


def test_models_with_different_heads_raise():
    batch = two_models(torch.rand(2, 2, 2), SAME)
    with pytest.raises(InputError, match="one has 1 layer × 2 heads, the other 1 × 1. Choose layers and heads"):
        Similarity().values(batch)
