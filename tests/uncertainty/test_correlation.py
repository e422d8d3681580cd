import numpy as np
import pytest
from scipy import stats

from headscope.uncertainty.correlation import pearson, spearman

X, Y = np.random.default_rng(0).integers(0, 6, (2, 5, 12)).astype(float)


@pytest.mark.parametrize(("correlation", "expected"), [(pearson, stats.pearsonr), (spearman, stats.spearmanr)])
def test_each_row_has_scipys_correlation(correlation, expected):
    rows = [expected(x, y).statistic for x, y in zip(X, Y, strict=True)]
    np.testing.assert_allclose(correlation(X, Y), rows, rtol=1e-12)


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_a_constant_side_has_no_correlation(correlation):
    assert np.isnan(correlation(np.full(3, 0.1), X[0, :3]))
