import numpy as np
import pytest
import torch

from headscope.patterns.classify.normalize import normalize_maps
from headscope.patterns.classify.resize import CHANNELS, resize_maps
from tests.oracles.patterns import make_image


def random_map(n, seed=0):
    random = torch.Generator().manual_seed(seed)
    weights = torch.rand(1, n, n, generator=random)
    segments = (torch.arange(n) >= n // 3).long()[None]
    return weights / weights.sum(-1, keepdim=True), segments


def resize(weights, side, segments=None, real=None):
    real = torch.ones(weights.shape[:2], dtype=torch.bool) if real is None else real
    return resize_maps(normalize_maps(weights, real, segments), side)


@pytest.mark.parametrize("n", [4, 6, 13, 32, 33, 70])
def test_images_equal_the_oracle(n):
    weights, segments = random_map(n)
    expected = make_image(weights[0].double().tolist(), segments[0].tolist(), 16)
    np.testing.assert_allclose(resize(weights, 16, segments)[0], expected, rtol=1e-5, atol=1e-6)  # float32 sums


def test_padding_on_either_side_does_not_change_the_image():
    n, width = 21, 40
    weights, segments = random_map(n)
    expected = resize(weights, 16, segments)
    for start in (0, 7, width - n):
        inside = slice(start, start + n)
        padded, real = torch.rand(1, width, width), torch.zeros(1, width, dtype=torch.bool)
        padded_segments = torch.full((1, width), -1)
        padded[0, inside, inside], real[0, inside], padded_segments[0, inside] = weights[0], True, segments[0]
        assert torch.allclose(resize(padded, 16, padded_segments, real), expected, atol=1e-6)


def test_a_thin_diagonal_survives_in_a_small_image():
    n = 300
    weights = torch.full((1, n, n), 0.5 / n) + 0.5 * torch.eye(n)
    image = resize(weights, 32)[0, CHANNELS.index("max")]
    assert image.diagonal().min() > 0.7
    assert (image - image * torch.eye(32)).max() < 0.1


def test_a_thin_column_survives_in_a_small_image():
    n = 300
    weights = torch.full((1, n, n), 0.5 / n)
    weights[..., 117] += 0.5
    image = resize(weights, 32)[0, CHANNELS.index("columns")]
    assert (image > 0.6).sum(-1).tolist() == [1] * 32


def test_a_map_smaller_than_the_image_is_enlarged_by_nearest_cells():
    weights, _ = random_map(4)
    image = resize(weights, 8)[0, CHANNELS.index("max")]
    assert torch.allclose(image[::2, ::2], weights[0].sqrt(), atol=1e-6)
    assert torch.equal(image[::2], image[1::2])
