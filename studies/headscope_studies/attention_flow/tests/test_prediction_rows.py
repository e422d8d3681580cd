"""Rows of the token that a prediction is read from, beside importances."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from headscope.core.tokens import Tokens
from headscope.uncertainty.correlation import dense_rank_correlation, spearman
from headscope_studies.attention_flow.prediction_rows import correlate, find_prediction_tokens


def test_the_prediction_token_is_the_class_token_or_the_last_one():
    tokens = Tokens.of([["[CLS]", "a", "[SEP]"], ["a", "cat"]])
    assert find_prediction_tokens(tokens).tolist() == [0, 1]
    assert find_prediction_tokens(Tokens.of(["a", "cat", "[CLS]"])).tolist() == [2]
    left = Tokens(
        [["a", "cat"]],
        torch.tensor([[False, True, True]]),
        *(torch.zeros(1, 3, dtype=kind) for kind in (torch.bool, torch.int64, torch.int64)),
    )
    assert find_prediction_tokens(left).tolist() == [2]


def test_correlations_are_those_of_scipy_with_ties():
    random = np.random.default_rng(0)
    for _ in range(50):
        rows, scores = random.integers(0, 4, (3, 9)) / 4, random.integers(0, 5, 9).astype(float)
        scores[random.integers(9)] = np.nan
        known = np.isfinite(scores)
        expected = [spearmanr(row[known], scores[known]).statistic for row in rows]
        np.testing.assert_allclose(correlate(rows, scores), expected, atol=1e-12)


def test_weights_that_differ_by_rounding_are_ties():
    rows = np.array([[1.0, 1.0 - 1e-12, 1.0 + 1e-12, 0.5]])
    scores = np.array([1.0, 2.0, 3.0, 0.0])
    assert correlate(rows, scores)[0] == pytest.approx(spearmanr([1, 1, 1, 0.5], scores).statistic)


def test_two_tokens_have_no_correlation():
    assert np.isnan(correlate(np.array([[0.1, 0.9, 0.5]]), np.array([np.nan, 0.3, 0.2]))).all()


def test_the_published_formula_is_spearmans_without_ties_and_not_with_them():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(20, 8)), random.normal(size=(20, 8))
    np.testing.assert_allclose(dense_rank_correlation(x, y), spearman(x, y), atol=1e-12)
    # dense ranks 1 1 1 2 and 1 2 3 4: d² is 0, 1, 4 and 4, and 1 - 6 · 9 / (4 · 15) is 0.1
    tied, ordered = np.array([1.0, 1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    assert float(dense_rank_correlation(tied, ordered)) == pytest.approx(0.1)
    assert float(spearman(tied, ordered)) == pytest.approx(spearmanr(tied, ordered).statistic)


def test_the_published_formula_takes_sizes_of_importances():
    rows, scores = np.array([[0.1, 0.2, 0.3, 0.4]]), np.array([-1.0, -2.0, -3.0, -4.0])
    assert correlate(rows, scores, "exact")[0] == pytest.approx(-1)
    assert correlate(rows, scores, "code")[0] == pytest.approx(1)
