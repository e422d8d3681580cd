import pytest
import torch

from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.statistics.row_distance import RowDistance
from tests.batches import build_maps, one_lens
from tests.models import tiny


def measure(weights, **options):
    """The distance of the rows of one map."""
    maps = build_maps([torch.tensor(weights)[None, None]], [["noun"] * len(weights)], **options)
    return RowDistance().values(one_lens(maps))["row_distance"].item()


def test_it_is_the_mean_total_variation_over_pairs_of_rows():
    assert measure([[0.5, 0.5], [0.5, 0.5]]) == 0
    assert measure([[1.0, 0.0], [0.0, 1.0]]) == 1
    assert measure([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]) == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert measure([[2.0, -2.0], [3.0, 9.0]], signed=True) == pytest.approx(0.25)  # of |w| / Σ|w|


def test_rows_without_weight_are_left_out():
    assert measure([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) == 1
    assert torch.tensor(measure([[1.0, 0.0], [0.0, 0.0]])).isnan()  # a single row


def test_rows_of_a_rollout_grow_alike():
    trace = capture(tiny("bert"), ["the cat sat on the mat and slept while the old man sang", "the cat sat"])
    first, last = RowDistance().values(one_lens(view(trace, "rollout")))["row_distance"][:, [0, -1], 0].unbind(1)
    assert (last < first / 1.5).all()
