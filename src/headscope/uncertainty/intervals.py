"""Confidence intervals and p-values of means (Student's t) and of proportions (Wilson)."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Numbers = np.ndarray[Any, np.dtype[Any]] | np.generic | float | int
"""An array or a single number."""

CONFIDENCE = 0.95


def t_quantile(degrees: Numbers, confidence: float = CONFIDENCE) -> Array:
    """Return the quantile of Student's t that bounds a two-sided interval."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, (1 + confidence) / 2))


def student_margin(sd: Numbers, n: Numbers, confidence: float = CONFIDENCE) -> Array:
    """Return half the width of the interval of a mean, t · sd / √n; NaN where n < 2."""
    sd, n = np.asarray(sd), np.asarray(n)
    with np.errstate(invalid="ignore", divide="ignore"):
        margin = t_quantile(np.maximum(n - 1, 1), confidence) * sd / np.sqrt(n)
    return np.where(n > 1, margin, np.nan)


def mean_interval(values: Array, confidence: float = CONFIDENCE) -> tuple[Array, Array, Array]:
    """Return the mean over the first axis and its interval; NaN values are left out.

    The mean is NaN where no value is left, the interval where fewer than two are.

    >>> [round(float(end), 3) for end in mean_interval(np.array([1.0, 2.0, 3.0, np.nan]))]
    [2.0, -0.484, 4.484]
    """
    finite = np.isfinite(values)
    n = finite.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(finite, values, 0.0).sum(0) / n
        squares = np.where(finite, values - mean, 0.0) ** 2
        sd = np.sqrt(squares.sum(0) / (n - 1))
    margin = student_margin(sd, n, confidence)
    return np.asarray(mean), np.asarray(mean - margin), np.asarray(mean + margin)


def relative_margin(
    base: Numbers, change: Numbers, base_margin: Numbers, other_margin: Numbers, change_margin: Numbers
) -> Array:
    """Return half the width of the interval of change / |base|, both means of the same inputs (delta method).

    The change is that from `base` to another mean. The margins of the three means give the covariance of the first
    two. The result is NaN where the interval of the base holds 0.
    """
    base, change, base_margin = np.asarray(base), np.asarray(change), np.asarray(base_margin)
    other_margin, change_margin = np.asarray(other_margin), np.asarray(change_margin)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = change / base
        squares = (1 + relative) * change_margin**2 + relative * ((1 + relative) * base_margin**2 - other_margin**2)
        margin = np.sqrt(np.maximum(squares, 0.0)) / np.abs(base)
    return np.where(np.abs(base) > base_margin, margin, np.nan)


def t_test(difference: Numbers, error: Numbers, degrees: Numbers) -> Array:
    """Return the two-sided p-value of a difference with its standard error.

    Where the error is 0, p is 1 for a difference of 0 and 0 for any other.
    """
    from scipy.special import stdtr

    difference, error = np.asarray(difference), np.asarray(error)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(degrees, -np.abs(difference) / error)
    p = np.where(error == 0, (difference == 0).astype(float), p)
    return np.where(np.isnan(error) | np.isnan(difference), np.nan, p)


def wilson_interval(successes: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's interval of a proportion; NaN for a total of 0.

    >>> [round(end, 3) for end in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    low, high = wilson_intervals(successes, total, confidence)
    return float(low), float(high)


def wilson_intervals(successes: Numbers, total: Numbers, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
    """Return the ends of Wilson's interval of each of several proportions; NaN for a total of 0."""
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        share, extra = np.asarray(successes) / np.asarray(total), z**2 / np.asarray(total)
        center, margin = share + extra / 2, z * np.sqrt(share * (1 - share) / total + extra / (4 * np.asarray(total)))
        return np.asarray((center - margin) / (1 + extra)), np.asarray((center + margin) / (1 + extra))


def binomial_test(successes: Numbers, total: Numbers, chance: Numbers) -> Array:
    """Return the exact p-value of each proportion against chance: twice the smaller tail, at most 1.

    >>> binomial_test(np.array([5, 3, 0]), np.array([5, 6, 0]), 0.5).tolist()
    [0.0625, 1.0, 1.0]
    """
    from scipy.special import bdtr, bdtrc

    successes, total = np.asarray(successes, float), np.asarray(total, np.int64)
    tails = bdtr(successes, total, chance), bdtrc(successes - 1, total, chance)
    return np.asarray(np.minimum(2 * np.minimum(*tails), 1.0))
