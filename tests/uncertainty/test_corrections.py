import numpy as np
from scipy import stats

from headscope.uncertainty.corrections import correct_p_values, simultaneous_factor
from tests.oracles import compare as oracle

P = np.random.default_rng(0).random(20) ** 3


def test_holm_is_its_definition():
    np.testing.assert_allclose(correct_p_values(P), oracle.holm(P), rtol=1e-12)


def test_benjamini_hochberg_is_scipys():
    np.testing.assert_allclose(correct_p_values(P, "benjamini_hochberg"), stats.false_discovery_control(P), rtol=1e-12)


def test_none_changes_nothing():
    np.testing.assert_array_equal(correct_p_values(P, "none"), P)


def test_missing_p_values_are_not_counted():
    assert correct_p_values(np.array([0.01, np.nan, 0.04])).tolist()[::2] == [0.02, 0.04]
    assert np.isnan(correct_p_values(np.full(2, np.nan))).all()


def test_the_factor_for_skewed_values_solves_edgeworths_first_term():
    n, tests, skewness = 60, 200, 2.0
    quantile = simultaneous_factor(tests, n, skewness=skewness) * stats.t.ppf(0.975, n - 1)
    term = skewness / (6 * n**0.5) * (2 * quantile**2 + 1) * stats.t.pdf(quantile, n - 1)
    assert abs(stats.t.sf(quantile, n - 1) + term - 0.025 / tests) < 1e-12
    assert simultaneous_factor(1, n, skewness=skewness) == 1
    assert simultaneous_factor(tests, 10**8, skewness=skewness) < 1.001 * simultaneous_factor(tests, 10**8)
