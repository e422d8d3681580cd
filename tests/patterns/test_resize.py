import numpy as np
import pytest
import torch

from headscope.patterns.classify.resize import CHANNELS, pictures
from headscope.patterns.classify.row_weights import sizes_of
from tests.oracles.patterns import picture


def some_map(n, seed=0):
    random = torch.Generator().manual_seed(seed)
    weights = torch.rand(1, n, n, generator=random)
    segments = (torch.arange(n) >= n // 3).long()[None]
    return weights / weights.sum(-1, keepdim=True), segments


@pytest.mark.parametrize("n", [4, 6, 13, 32, 33, 70])
def test_pictures_equal_their_literal_version(n):
    weights, segments = some_map(n)
    found = pictures(sizes_of(weights, torch.ones(1, n, dtype=torch.bool), segments), 16)[0]
    wanted = picture(weights[0].double().tolist(), segments[0].tolist(), 16)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)  # float32 sums


def test_padding_on_either_side_changes_no_picture():
    n, wide = 21, 40
    weights, segments = some_map(n)
    plain = pictures(sizes_of(weights, torch.ones(1, n, dtype=torch.bool), segments), 16)
    for start in (0, 7, wide - n):
        place = slice(start, start + n)
        padded, real, texts = (
            torch.rand(1, wide, wide),
            torch.zeros(1, wide, dtype=torch.bool),
            torch.full((1, wide), -1),
        )
        padded[0, place, place], real[0, place], texts[0, place] = weights[0], True, segments[0]
        assert torch.allclose(pictures(sizes_of(padded, real, texts), 16), plain, atol=1e-6)


def test_a_thin_diagonal_survives_in_a_small_picture():
    n = 300
    weights = torch.full((1, n, n), 0.5 / n) + 0.5 * torch.eye(n)
    seen = pictures(sizes_of(weights, torch.ones(1, n, dtype=torch.bool)), 32)[0, CHANNELS.index("largest")]
    assert seen.diagonal().min() > 0.7
    assert (seen - seen * torch.eye(32)).max() < 0.1


def test_a_thin_column_survives_in_a_small_picture():
    n = 300
    weights = torch.full((1, n, n), 0.5 / n)
    weights[..., 117] += 0.5
    seen = pictures(sizes_of(weights, torch.ones(1, n, dtype=torch.bool)), 32)[0, CHANNELS.index("columns")]
    assert (seen > 0.6).sum(-1).tolist() == [1] * 32


def test_a_map_smaller_than_the_picture_is_drawn_by_its_nearest_cells():
    weights, _ = some_map(4)
    seen = pictures(sizes_of(weights, torch.ones(1, 4, dtype=torch.bool)), 8)[0, CHANNELS.index("largest")]
    assert torch.allclose(seen[::2, ::2], weights[0].sqrt(), atol=1e-6)
    assert torch.equal(seen[::2], seen[1::2])
