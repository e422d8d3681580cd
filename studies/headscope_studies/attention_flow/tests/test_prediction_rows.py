"""Rows of the token that a prediction is read from, beside importances."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from headscope.core.tokens import Tokens
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
