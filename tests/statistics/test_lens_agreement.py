from math import sqrt

import pytest
import torch

from headscope.core.batch import Batch
from headscope.core.catalog import lenses, statistics
from headscope.statistics.lens_agreement import LensAgreement
from tests.batches import build_maps

SAME = [[0.5, 0.1], [0.3, 0.2]]
OTHER = [[1.0, 0.0], [0.0, 0.0]]


def two_lenses(left, right):
    """Return a batch of the maps of two lenses."""
    maps = {
        ("model", lens): build_maps([torch.as_tensor(weights).view(1, -1, 2, 2)], [["noun", "verb"]], lens=lens)
        for lens, weights in (("raw", left), ("norm", right))
    }
    return Batch(maps["model", "raw"].examples, maps, "raw")


def test_a_lens_agrees_with_itself():
    values = LensAgreement().values(two_lenses(SAME, SAME))
    assert values["lens_agreement"].item() == pytest.approx(1)
    assert values["lens_agreement_rank"].item() == pytest.approx(1)


def test_agreement_is_independent_of_scale_and_changes_its_sign_with_the_map():
    values = LensAgreement().values(two_lenses(SAME, -3 * torch.tensor(SAME)))
    assert values["lens_agreement"].item() == pytest.approx(-1)
    assert values["lens_agreement_rank"].item() == pytest.approx(-1)


def test_the_cosine_is_that_of_the_flattened_maps():
    values = LensAgreement().values(two_lenses(SAME, OTHER))
    assert values["lens_agreement"].item() == pytest.approx(0.5 / sqrt(0.25 + 0.01 + 0.09 + 0.04))


def test_a_map_without_weight_has_no_agreement():
    values = LensAgreement().values(two_lenses(SAME, torch.zeros(2, 2)))
    assert all(each.isnan().all() for each in values.values())


def test_a_merged_lens_is_compared_with_every_head():
    heads = torch.rand(3, 2, 2)
    for batch in (two_lenses(heads, SAME), two_lenses(SAME, heads)):
        statistic = LensAgreement()
        assert statistic.axes(batch) == {"head": (0, 1, 2)}
        assert statistic.values(batch)["lens_agreement"].shape == (1, 1, 3)
        assert statistic.observe(batch).labels["head"] == [0, 1, 2]


def test_the_other_lens_is_a_parameter():
    statistic = statistics.make("lens_agreement:other=(effective:keys=paper)")
    assert statistic.other == lenses.make("effective:keys=paper")
    assert statistic.lenses(lenses.make("raw")) == (statistic.other,)
    assert statistic.lenses(statistic.other) == ()
