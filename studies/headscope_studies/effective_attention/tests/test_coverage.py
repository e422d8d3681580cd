"""Intervals that verdicts rest on, on inputs for which the truth is known."""

import numpy as np
import pytest
import xarray as xr

from headscope.experiments.pattern_shares import split_counts
from headscope.experiments.summary import compare_layers, summarise
from headscope.uncertainty.bootstrap import bootstrap_means, percentile_interval
from headscope.uncertainty.corrections import simultaneous_factor
from headscope.uncertainty.intervals import mean_interval
from headscope_studies.effective_attention.claims import FEWEST, SKEWNESS
from tests.experiments.test_pattern_shares import LENSES, make_rows

TESTS = 266  # verdicts in one family, as in the docs' study


def miss_family(n, skewness, *, runs, seed=0):
    """Return how often one of TESTS intervals of exponential values misses, of independent families."""
    random, missed, factor = np.random.default_rng(seed), 0, simultaneous_factor(TESTS, n, skewness=skewness)
    for start in range(0, runs, 5000):
        values = random.exponential(size=(n, min(5000, runs - start)))
        mean, low, _ = mean_interval(values)
        missed += int((abs(mean - 1) > factor * (mean - low)).sum())
    return 1 - (1 - missed / runs) ** TESTS


def tied_layers(n, random, layers=12):
    """Similarities of layers whose means are all the same, one row for each input."""
    return 0.8 - 0.1 * random.exponential(size=(n, layers)) + 0.05 * random.standard_normal((n, 1))


def layer_margin(values):
    """Return the ends of the interval of the margin between the last two layers and the others."""
    table = xr.DataArray(values[:, None], dims=("example", "lens", "layer"), coords={"lens": ["raw"]})
    margin = compare_layers(summarise("similarity_layer", table), len(values))
    return tuple(float(margin[name].item()) for name in ("layer_margin_low", "layer_margin_high"))


def drawn_margin(values):
    """Return the ends by bootstrap draws of inputs, as they were before."""
    means = bootstrap_means(values, draws=200)
    return percentile_interval(means[:, :-2].min(-1) - means[:, -2:].max(-1))


def miss_margin(interval, runs):
    random, missed = np.random.default_rng(1), 0
    for _ in range(runs):
        low, high = interval(tied_layers(60, random))
        missed += not low <= 0 <= high
    return missed / runs


def test_simultaneous_intervals_allow_for_skewed_inputs():
    plain, allowed = (miss_family(FEWEST, skewness, runs=100_000) for skewness in (0.0, SKEWNESS))
    assert allowed < 0.35 < plain


def test_margins_hold_where_layers_are_tied():
    assert miss_margin(layer_margin, 100) <= 0.05
    assert miss_margin(drawn_margin, 100) > 0.2


@pytest.mark.soak
@pytest.mark.parametrize(("n", "most", "plain"), [(FEWEST, 0.30, 0.50), (100, 0.17, 0.30), (400, 0.08, 0.10)])
def test_simultaneous_intervals_miss_at_most_so_often(n, most, plain):
    """Of 266 intervals of exponential values that hold together with 95 % confidence; plain ones miss more."""
    assert miss_family(n, SKEWNESS, runs=1_000_000) < most
    assert miss_family(n, 0.0, runs=1_000_000) > plain


@pytest.mark.soak
def test_margins_of_tied_layers_miss_at_most_one_time_in_twenty():
    assert miss_margin(layer_margin, 2000) <= 0.05


@pytest.mark.soak
def test_random_changes_of_patterns_are_shown_at_most_one_time_in_twenty():
    """Maps of other lenses have other classes, but the same shares of them: counted changes hold 0."""
    held = []
    for seed in range(400):
        parts = split_counts(make_rows(60, seed=seed))
        counted = summarise("counted", parts.sum("part"), baseline="raw").sel(lens=list(LENSES)[1:])
        low, high = counted["counted_change_low"], counted["counted_change_high"]
        held.append(((low <= 0) & (high >= 0)).values)
    assert np.mean(held) > 0.93
