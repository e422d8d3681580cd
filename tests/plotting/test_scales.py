"""Where colour scales of weights end."""

import numpy as np
import pytest
from matplotlib.colors import Normalize

from headscope.core.catalog import figures
from headscope.plotting.scales import find_quantile, weight_scale


def test_a_scale_ends_at_the_quantile_of_absolute_weights():
    weights = np.linspace(-1.0, 0.9, 10_000).reshape(100, 100)
    share, end = find_quantile(weights)
    assert share == 0.995
    assert end == pytest.approx(np.quantile(np.abs(weights), 0.995), abs=1e-3)  # the next larger weight


def test_few_weights_are_all_on_the_scale():
    assert find_quantile(np.arange(100.0).reshape(10, 10))[1] == 99


@pytest.mark.parametrize("tokens", [20, 128, 512])
def test_a_head_with_one_key_for_each_query_is_not_drawn_by_its_noise(tokens):
    noise = np.random.default_rng(0).uniform(0, 1e-4, (tokens, tokens))
    assert find_quantile(np.eye(tokens) + noise)[1] > 0.99


def test_masked_weights_do_not_count():
    assert find_quantile(np.array([[0.5, np.nan], [0.2, 0.3]]))[1] == 0.5


@pytest.mark.parametrize("weights", [np.zeros((3, 3)), np.full((3, 3), np.nan)])
def test_a_map_without_weights_has_a_scale_to_one(weights):
    assert weight_scale(weights, signed=True).norm.vmax == 1


def test_the_scale_of_a_sparse_map_ends_at_its_largest_weight():
    weights = np.zeros((50, 50))
    weights[0, 0] = 0.7
    assert find_quantile(weights)[1] == 0.7


def test_signed_maps_have_zero_in_the_middle():
    norm = weight_scale(np.array([[0.1, -0.4]]), signed=True).norm
    assert (norm.vmin, norm.vmax) == (-0.4, 0.4)


def test_every_figure_of_weights_is_linear_by_default_and_takes_a_limit():
    entries = {name: figures.make(name) for name in figures.names()}
    scaled = {name: entry for name, entry in entries.items() if hasattr(entry, "scale")}
    del scaled["identifiability"]  # the scale of an axis
    assert set(scaled) == {"compare", "head_grid", "matrix", "overlay", "typical_maps", "words"}
    assert {entry.scale for entry in scaled.values()} == {"linear"}
    assert {name for name, entry in scaled.items() if not hasattr(entry, "limit")} == {"words"}
    assert type(weight_scale(np.eye(3), signed=False).norm) is Normalize
