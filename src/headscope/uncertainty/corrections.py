"""P-values that stay honest where many heads are tested at once."""

from typing import Any

import numpy as np

CORRECTIONS = ("holm", "benjamini_hochberg", "none")
"""Holm bounds the chance of any false find; Benjamini and Hochberg bound the share of false ones among those found."""

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def correct_p_values(p: Numbers, correction: str = "holm") -> Numbers:
    """P-values, each corrected for all others in the table; NaN stays NaN and does not count.

    >>> corrected(np.array([0.01, 0.04, np.nan, 0.03])).round(2)
    array([0.03, 0.06,  nan, 0.06])
    """
    found = np.array(p, dtype=float)
    there = np.isfinite(found)
    if correction != "none" and there.any():
        rule = _holm if correction == "holm" else _benjamini_hochberg
        order = np.argsort(found[there], kind="stable")
        sorted_back = np.empty(len(order))
        sorted_back[order] = rule(found[there][order])
        found[there] = sorted_back
    return found


def _holm(rising: Numbers) -> Numbers:
    """The smallest times their number, the next times one less, and never smaller than one before it."""
    left = np.arange(len(rising), 0, -1)
    return np.minimum(np.maximum.accumulate(left * rising), 1.0)


def _benjamini_hochberg(rising: Numbers) -> Numbers:
    """Each times their number over its rank, and never larger than one after it."""
    ranks = np.arange(1, len(rising) + 1)
    return np.minimum(np.minimum.accumulate((rising * len(rising) / ranks)[::-1])[::-1], 1.0)
