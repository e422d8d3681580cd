"""Corrections of p-values and intervals for multiple tests."""

import numpy as np

from headscope.uncertainty.intervals import CONFIDENCE, Array, t_quantile

LEVEL = 0.05
"""What is tested is significant if its corrected p-value is below this level."""

CORRECTIONS = ("holm", "benjamini_hochberg", "none")
"""Holm controls the family-wise error rate, Benjamini–Hochberg the false discovery rate."""


def correct_p_values(p: Array, correction: str = "holm") -> Array:
    """Correct p-values for the number of tests; NaN stays NaN and is not counted.

    >>> correct_p_values(np.array([0.01, 0.04, np.nan, 0.03])).round(2)
    array([0.03, 0.06,  nan, 0.06])
    """
    corrected = np.array(p, dtype=float)
    finite = np.isfinite(corrected)
    if correction != "none" and finite.any():
        rule = _holm if correction == "holm" else _benjamini_hochberg
        order = np.argsort(corrected[finite], kind="stable")
        values = np.empty(len(order))
        values[order] = rule(corrected[finite][order])
        corrected[finite] = values
    return corrected


def _holm(ascending: Array) -> Array:
    """Multiply by the number of remaining tests; the result never decreases."""
    remaining = np.arange(len(ascending), 0, -1)
    return np.minimum(np.maximum.accumulate(remaining * ascending), 1.0)


def _benjamini_hochberg(ascending: Array) -> Array:
    """Multiply by the number of tests over the rank; the result never decreases."""
    rank = np.arange(1, len(ascending) + 1)
    return np.minimum(np.minimum.accumulate((ascending * len(ascending) / rank)[::-1])[::-1], 1.0)


def simultaneous_factor(
    tests: int, n: int | None = None, confidence: float = CONFIDENCE, *, skewness: float = 0.0
) -> float:
    """Return the factor by which intervals widen so that all of them hold together (Bonferroni).

    Of means of `n` values, by quantiles of Student's t; without `n`, of the normal distribution. Far out in the tails
    Student's intervals of skewed values miss more often than they say; `skewness` allows for values as skewed as that,
    by the first term of Edgeworth's expansion (2 is that of an exponential distribution).

    >>> round(simultaneous_factor(1), 3), round(simultaneous_factor(100), 3), round(simultaneous_factor(100, 20), 3)
    (1.0, 1.776, 2.0)
    """
    from scipy.special import ndtri

    doubt = 1 - confidence
    if n is None:
        return float(ndtri(doubt / 2 / tests) / ndtri(doubt / 2))
    degrees = max(float(n) - 1, 1.0)  # one value has no interval to widen
    if skewness and tests > 1:
        quantile = _skewed_quantile(doubt / 2 / tests, degrees, skewness / (6 * np.sqrt(n)))
        return float(quantile / t_quantile(degrees, confidence))
    return float(t_quantile(degrees, 1 - doubt / tests) / t_quantile(degrees, confidence))


def _skewed_quantile(tail: float, degrees: float, skew: float) -> float:
    """Return q with P(t > q) + skew · (2q² + 1) · density(q) = tail, by bisection."""
    from scipy.special import gammaln, stdtr

    scale = np.exp(gammaln((degrees + 1) / 2) - gammaln(degrees / 2)) / np.sqrt(degrees * np.pi)
    low, high = 0.0, 1e4
    for _ in range(100):
        q = (low + high) / 2
        density = scale * (1 + q**2 / degrees) ** (-(degrees + 1) / 2)
        missed = stdtr(degrees, -q) + skew * (2 * q**2 + 1) * density
        low, high = (q, high) if missed > tail else (low, q)
    return high
