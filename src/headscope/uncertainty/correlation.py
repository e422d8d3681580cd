"""Linear and rank correlation of numpy arrays along the last axis.

Maps on a device have their own masked version, `maps.similarity.rank_correlation`.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, "*draws example"]


def pearson(x: Values, y: Values) -> Float[np.ndarray, "*draws"]:
    """Return the linear correlation; NaN where either side is constant."""
    constant = (np.ptp(x, -1) == 0) | (np.ptp(y, -1) == 0)  # a rounded mean need not leave an exact 0 below
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation: Any = (x * y).sum(-1) / np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.where(constant, np.nan, correlation)


def pearson_moments(x: Values, y: Values) -> Float[np.ndarray, "*draws example 6"]:
    """Return per-example terms, 1, x, y, x², y² and xy, whose sums give Pearson's r in `pearson_from_sums`."""
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1)


def pearson_from_sums(sums: Float[np.ndarray, "*draws 6"]) -> Float[np.ndarray, "*draws"]:
    """Return the linear correlation from the sums of `pearson_moments`; NaN where either side is constant."""
    n, x, y, xx, yy, xy = np.moveaxis(np.asarray(sums), -1, 0)
    spread = xx - x * x / n, yy - y * y / n
    constant = (spread[0] <= 1e-12 * xx) | (spread[1] <= 1e-12 * yy)  # what rounding leaves of 0
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = (xy - x * y / n) / np.sqrt(spread[0] * spread[1])
    return np.where(constant, np.nan, correlation)


def spearman(x: Values, y: Values) -> Float[np.ndarray, "*draws"]:
    """Return the rank correlation, with ties at their average rank; NaN where either side is constant.

    >>> float(spearman(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0, 9.0, 8.0])).round(12))
    0.8
    """
    from scipy.stats import rankdata

    return pearson(rankdata(x, axis=-1), rankdata(y, axis=-1))
