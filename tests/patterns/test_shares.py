import numpy as np
import pytest

from headscope.patterns.shares import append_unsure, correct_shares, pool_heads

CONFUSION = np.array([[45.0, 3, 2], [4, 30, 6], [10, 5, 85]])
TRUE = np.array([0.5, 0.2, 0.3])


def count(true, confusion=CONFUSION):
    """Return the shares that a classifier counts."""
    return true @ (confusion / confusion.sum(-1, keepdims=True))


def test_true_shares_are_recovered_from_counted_ones():
    share, low, high = correct_shares(count(TRUE)[None], np.zeros((1, 3)), 1e6 * CONFUSION)
    assert share[0] == pytest.approx(TRUE, abs=1e-3)
    assert ((low < share + 1e-9) & (share < high + 1e-9)).all()
    assert (high - low).max() < 0.01  # the errors are known exactly, and there is no sampling error


def test_intervals_cover_the_errors_of_the_classifier_and_the_examples():
    counted = count(TRUE)[None]
    _, low, high = correct_shares(counted, np.zeros((1, 3)), CONFUSION)
    _, lower, higher = correct_shares(counted, np.full((1, 3), 0.03), CONFUSION)
    assert ((high - low) > 0.03).all()
    assert ((higher - lower) > (high - low)).all()


def test_intervals_have_about_their_nominal_coverage():
    random, covered = np.random.default_rng(1), []
    rates = CONFUSION / CONFUSION.sum(-1, keepdims=True)
    for _ in range(60):
        confusion = np.stack([random.multinomial(int(n), row) for n, row in zip(CONFUSION.sum(-1), rates, strict=True)])
        counted = random.multinomial(2000, count(TRUE)) / 2000
        error = np.sqrt(counted * (1 - counted) / 2000)
        _, low, high = correct_shares(counted[None], error[None], confusion.astype(float))
        covered.append(((low <= TRUE) & (high >= TRUE)).mean())
    assert 0.88 < np.mean(covered) <= 1


def test_shares_stay_on_the_simplex_where_no_shares_explain_the_counts():
    share, low, high = correct_shares(np.array([[1.0, 0, 0]]), np.zeros((1, 3)), CONFUSION)
    assert share.sum() == pytest.approx(1)
    assert share[0, 0] > 0.99
    assert (low >= 0).all()
    assert (high <= 1 + 1e-9).all()


def test_unsure_maps_are_attributed_to_the_true_classes():
    confusion = np.array([[80.0, 0, 20], [0, 60, 40]])
    share, _, _ = correct_shares(np.array([[0.4, 0.3, 0.3]]), np.zeros((1, 3)), 1e6 * confusion)
    assert share[0] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert append_unsure(np.full((2, 5), 0.2), "both").shape == (2, 6)
    assert np.isnan(append_unsure(np.full((2, 5), 0.2), "both")[:, 5]).all()


def test_standard_errors_of_heads_add_as_if_fully_correlated():
    mean = np.array([[0.2, 0.8], [0.4, 0.6], [np.nan, np.nan]])
    variance = np.array([[0.01, 0.01], [0.04, 0.04], [np.nan, np.nan]])
    share, error = pool_heads(mean, variance)
    assert share == pytest.approx([0.3, 0.7])
    assert error == pytest.approx([0.15, 0.15])
    assert np.isnan(pool_heads(mean[2:], variance[2:])[0]).all()


def test_shares_without_counts_are_nan():
    missing = np.full((1, 3), np.nan)
    assert all(np.isnan(values).all() for values in correct_shares(missing, missing, CONFUSION))
