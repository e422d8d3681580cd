from math import log

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

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


def test_the_axes_name_both_heads():
    batch = batch_of(SAME, OTHER)
    result = HeadDistance().finish(HeadDistance().observe(batch))
    assert result.head_distance.dims == ("layer", "head", "other_layer", "other_head")


def test_the_sum_of_the_squares_of_scipys_distances_is_the_result_without_smoothing():
    weights = torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(0)).square()
    weights[0, 0, :, 2] = 0  # a share of 0, of one head alone
    weights[1, 2, :, 2] = weights[0, 1, :, 4] = 0
    weights = (weights / weights.sum(-1, keepdim=True)).double()
    values = HeadDistance(smoothing=0.0).values(one_lens(build_maps([weights], [["noun"] * 6])))["head_distance"]
    heads = weights.view(6, 6, 6).numpy()
    expected = [[sum(jensenshannon(heads[a], heads[b], axis=-1) ** 2) for b in range(6)] for a in range(6)]
    assert np.allclose(values.view(6, 6), expected, rtol=1e-12, atol=1e-13)  # float64


def test_the_state_does_not_grow_with_the_number_of_texts():
    weights = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    state = HeadDistance().observe(one_lens(build_maps([weights], [["noun"] * 5])))
    longer = state
    for _ in range(20):
        longer = longer + state
    sizes = [part.leaves["head_distance"] for part in (state, longer)]
    assert sizes[0].mean.nbytes == sizes[1].mean.nbytes == 6 * 6 * 8
    assert sizes[0].square.nbytes == sizes[1].square.nbytes == 6 * 6 * 8
    assert (sizes[1].n == 21).all()
