import numpy as np
import pytest

from headscope.patterns import shares

ERRORS = np.array([[45.0, 3, 2], [4, 30, 6], [10, 5, 85]])
TRUE = np.array([0.5, 0.2, 0.3])


def counted(true, errors=ERRORS):
    return true @ (errors / errors.sum(-1, keepdims=True))


def test_true_shares_come_back_from_what_a_classifier_counts():
    found, low, high = shares.corrected(counted(TRUE)[None], np.zeros((1, 3)), 1e6 * ERRORS)
    assert found[0] == pytest.approx(TRUE, abs=1e-3)
    assert ((low < found + 1e-9) & (found < high + 1e-9)).all()
    assert (high - low).max() < 0.01  # errors that are known for sure, and no error of sampling


def test_intervals_hold_the_classifiers_errors_and_the_examples():
    q = counted(TRUE)[None]
    _, low, high = shares.corrected(q, np.zeros((1, 3)), ERRORS)
    _, lower, higher = shares.corrected(q, np.full((1, 3), 0.03), ERRORS)
    assert ((high - low) > 0.03).all()
    assert ((higher - lower) > (high - low)).all()


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    random, covered = np.random.default_rng(1), []
    rows = ERRORS / ERRORS.sum(-1, keepdims=True)
    for _ in range(60):
        seen = np.stack([random.multinomial(int(n), row) for n, row in zip(ERRORS.sum(-1), rows, strict=True)])
        q = random.multinomial(2000, counted(TRUE)) / 2000
        error = np.sqrt(q * (1 - q) / 2000)
        _, low, high = shares.corrected(q[None], error[None], seen.astype(float))
        covered.append(((low <= TRUE) & (high >= TRUE)).mean())
    assert 0.88 < np.mean(covered) <= 1


def test_shares_stay_on_the_simplex_where_no_shares_explain_what_was_counted():
    found, low, high = shares.corrected(np.array([[1.0, 0, 0]]), np.zeros((1, 3)), ERRORS)
    assert found.sum() == pytest.approx(1)
    assert found[0, 0] > 0.99
    assert (low >= 0).all()
    assert (high <= 1 + 1e-9).all()


def test_unsure_is_explained_by_the_true_classes():
    errors = np.array([[80.0, 0, 20], [0, 60, 40]])
    found, _, _ = shares.corrected(np.array([[0.4, 0.3, 0.3]]), np.zeros((1, 3)), 1e6 * errors)
    assert found[0] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert shares.named(np.full((2, 5), 0.2), "both").shape == (2, 6)
    assert np.isnan(shares.named(np.full((2, 5), 0.2), "both")[:, 5]).all()


def test_heads_are_pooled_as_if_all_erred_together():
    mean = np.array([[0.2, 0.8], [0.4, 0.6], [np.nan, np.nan]])
    variance = np.array([[0.01, 0.01], [0.04, 0.04], [np.nan, np.nan]])
    share, error = shares.pooled(mean, variance)
    assert share == pytest.approx([0.3, 0.7])
    assert error == pytest.approx([0.15, 0.15])
    assert np.isnan(shares.pooled(mean[2:], variance[2:])[0]).all()


def test_nothing_counted_is_nan():
    nothing = np.full((1, 3), np.nan)
    assert all(np.isnan(each).all() for each in shares.corrected(nothing, nothing, ERRORS))
