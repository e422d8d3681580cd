import numpy as np
from scipy import stats

from headscope.uncertainty.corrections import correct_p_values
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
