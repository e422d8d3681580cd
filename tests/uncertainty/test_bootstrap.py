import numpy as np
import pytest

from headscope.uncertainty import bootstrap
from headscope.uncertainty.bootstrap import bootstrap_means, bootstrap_metric, percentile_interval, resample_counts
from headscope.uncertainty.intervals import mean_interval


def test_the_bootstrap_interval_of_a_mean_is_close_to_students():
    values = np.random.default_rng(3).normal(size=(400, 1))
    low, high = percentile_interval(bootstrap_means(values))
    _, *expected = mean_interval(values)
    assert [low[0], high[0]] == pytest.approx([end[0] for end in expected], abs=0.02)


def test_bootstrap_means_are_means_of_resampled_examples():
    values = np.random.default_rng(0).normal(size=(7, 2, 3))
    values[2, 0, 1] = np.nan
    times = np.random.default_rng(5).multinomial(7, [1 / 7] * 7, size=4)
    expected = [np.nanmean(np.repeat(values, row, axis=0), axis=0) for row in times]
    np.testing.assert_allclose(bootstrap_means(values, draws=4, seed=5), expected, rtol=1e-12)


def test_the_same_seed_gives_the_same_draws():
    values = np.random.default_rng(3).normal(size=(40, 1))
    assert (bootstrap_means(values) == bootstrap_means(values)).all()
    assert (bootstrap_means(values) != bootstrap_means(values, seed=1)).any()


def test_no_example_has_means_of_nan():
    assert bootstrap_means(np.zeros((0, 2))).shape == (500, 2)
    assert np.isnan(bootstrap_means(np.zeros((0, 2)))).all()


def test_resampled_counts_keep_their_total_and_empty_cells():
    counts = np.array([[5, 0], [2, 13]])
    drawn = resample_counts(counts, draws=300, seed=1)
    assert (drawn.sum((1, 2)) == 20).all()
    assert (drawn[:, 0, 1] == 0).all()
    assert drawn.mean(0) == pytest.approx(counts, abs=0.5)


def test_a_bootstrap_metric_is_the_metric_of_resampled_examples(monkeypatch):
    x, y = np.random.default_rng(0).normal(size=(2, 9))
    index = np.random.default_rng(2).integers(0, 9, (50, 9))
    expected = [(x[row] * y[row]).mean() for row in index]

    def metric(x, y):
        return (x * y).mean(-1)

    np.testing.assert_allclose(bootstrap_metric(metric, x, y, draws=50, seed=2), expected, rtol=1e-12)
    monkeypatch.setattr(bootstrap, "CELLS", 30)  # three draws at a time
    np.testing.assert_allclose(bootstrap_metric(metric, x, y, draws=50, seed=2), expected, rtol=1e-12)


def test_the_percentile_interval_is_numpys():
    draws = np.random.default_rng(0).normal(size=(60, 3))
    np.testing.assert_array_equal(percentile_interval(draws), np.percentile(draws, [2.5, 97.5], axis=0))
    np.testing.assert_array_equal(percentile_interval(draws, 0.5, axis=1), np.percentile(draws, [25, 75], axis=1))


def test_draws_of_nan_are_ignored_on_request():
    draws = np.array([1.0, 2.0, np.nan, 4.0])
    assert np.isnan(percentile_interval(draws)).all()
    np.testing.assert_array_equal(percentile_interval(draws, ignore_nan=True), np.percentile([1, 2, 4], [2.5, 97.5]))
    assert np.isnan(percentile_interval(np.full(3, np.nan), ignore_nan=True)).all()
