import numpy as np
import pytest
from scipy import stats

from headscope.uncertainty.intervals import (
    binomial_test,
    mean_interval,
    student_margin,
    t_quantile,
    t_test,
    wilson_interval,
    wilson_intervals,
)

VALUES = [1.0, 2.0, 4.0, 4.5]


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_interval_of_a_mean_is_scipys(confidence):
    expected = stats.t.interval(confidence, 3, loc=np.mean(VALUES), scale=stats.sem(VALUES))
    mean, *interval = mean_interval(np.array(VALUES), confidence)
    assert mean == np.mean(VALUES)
    assert interval == pytest.approx(expected, rel=1e-12)


def test_missing_values_are_left_out_of_the_mean_and_its_interval():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan], [5.0, np.nan, np.nan]])
    mean, low, high = mean_interval(values)
    np.testing.assert_array_equal(mean, [3.0, 5.0, np.nan])
    assert (high - low)[0] == pytest.approx(2 * 4.3027 * 2 / 3**0.5, rel=1e-4)  # Student's t, two degrees of freedom
    assert np.isnan(low[1:]).all()


def test_the_margin_is_nan_for_fewer_than_two_values():
    margin = student_margin(np.array([0.5, 0.5, 0.5]), np.array([0, 1, 2]))
    assert np.isnan(margin).tolist() == [True, True, False]


def test_the_quantile_is_scipys():
    assert t_quantile(np.array([1.0, 7.5])) == pytest.approx(stats.t.ppf(0.975, [1.0, 7.5]), rel=1e-12)


def test_the_p_value_is_scipys():
    found = t_test(np.mean(VALUES), stats.sem(VALUES), np.array(3))
    assert found == pytest.approx(stats.ttest_1samp(VALUES, 0).pvalue, rel=1e-9)


def test_the_p_value_without_spread_is_0_or_1():
    difference, error = np.array([0.0, 0.5, np.nan, 1.0]), np.array([0.0, 0.0, 0.0, np.nan])
    np.testing.assert_array_equal(t_test(difference, error, np.full(4, 3)), [1.0, 0.0, np.nan, np.nan])


@pytest.mark.parametrize(("successes", "total"), [(0, 5), (8, 10), (500, 500), (1, 3)])
def test_the_interval_of_a_proportion_is_scipys(successes, total):
    expected = stats.binomtest(successes, total).proportion_ci(method="wilson")
    assert wilson_interval(successes, total) == pytest.approx([expected.low, expected.high], abs=1e-12)


def test_no_observation_has_no_interval():
    assert np.isnan(wilson_interval(0, 0)).all()


def test_several_proportions_have_the_intervals_of_each():
    ends = wilson_intervals(np.array([0, 8, 0]), np.array([5, 10, 0]))
    np.testing.assert_allclose(np.stack(ends, 1), [wilson_interval(*pair) for pair in ((0, 5), (8, 10), (0, 0))])


@pytest.mark.parametrize(("successes", "total", "chance"), [(0, 5, 0.5), (8, 10, 0.3), (30, 100, 0.5), (3, 3, 1 / 3)])
def test_the_binomial_test_doubles_the_smaller_tail(successes, total, chance):
    tails = [stats.binomtest(successes, total, chance, alternative=side).pvalue for side in ("less", "greater")]
    expected = min(1.0, 2 * min(tails))
    assert float(binomial_test(successes, total, chance)) == pytest.approx(expected, rel=1e-9)
