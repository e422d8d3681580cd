from math import log

import pytest
import torch

from headscope.statistics import head_distance
from headscope.statistics.head_distance import HeadDistance
from tests.batches import build_maps, one_lens

SAME = [[0.5, 0.1], [0.3, 0.2]]
OTHER = [[1.0, 0.0], [0.0, 0.0]]


def batch_of(*maps, row=("noun", "verb")):
    return one_lens(build_maps([torch.tensor(maps)[None]], [list(row)]))


def test_heads_without_a_common_key_have_distance_log_2_per_token():
    values = HeadDistance(smoothing=0.0).values(batch_of([[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]))
    table = values["head_distance"][0, 0, :, 0]
    assert table[0, 1].item() == table[1, 0].item() == pytest.approx(2 * log(2))
    assert table.diagonal().tolist() == [0, 0]


def test_the_mean_is_over_tokens():
    maps = batch_of([[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]])
    values = HeadDistance(smoothing=0.0, reduce="mean").values(maps)["head_distance"]
    assert values[0, 0, 0, 0, 1].item() == pytest.approx(log(2))


def test_distances_are_symmetric_and_0_on_the_diagonal():
    weights = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    values = HeadDistance().values(one_lens(build_maps([weights], [["noun"] * 5])))["head_distance"].view(6, 6)
    assert values.diagonal().abs().max() < 1e-5
    torch.testing.assert_close(values, values.T)


def test_comparing_few_heads_at_a_time_gives_the_same(monkeypatch):
    weights = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    batch = one_lens(build_maps([weights], [["noun"] * 5]))
    whole = HeadDistance().values(batch)["head_distance"]
    monkeypatch.setitem(head_distance.CELLS, "cpu", 50)
    torch.testing.assert_close(HeadDistance().values(batch)["head_distance"], whole)


def test_the_axes_name_both_heads():
    batch = batch_of(SAME, OTHER)
    result = HeadDistance().finish(HeadDistance().observe(batch))
    assert result.head_distance.dims == ("layer", "head", "other_layer", "other_head")
