"""How sure a mean over examples is, found by drawing the examples again and again."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
DRAWS = 500
ENDS = (2.5, 97.5)
"""Percentiles of a 95 % interval."""


def drawn_means(
    values: Array,  # example …
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Array:
    """Means over examples that are drawn with replacement: draw …; an example without a value does not count.

    What stands side by side is drawn together, so that differences of two means are those of pairs.
    """
    many = len(values)
    if not many:
        return np.full((draws, *values.shape[1:]), np.nan)
    times = np.random.default_rng(seed).multinomial(many, [1 / many] * many, size=draws).astype(np.float64)
    flat = values.reshape(many, -1)
    there = np.isfinite(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = times @ np.where(there, flat, 0.0) / (times @ there)
    return found.reshape(draws, *values.shape[1:])


def interval(
    draws: Array,  # draw …
) -> tuple[Array, Array]:
    """The ends of the 95 % interval; NaN where nothing was drawn."""
    low, high = np.percentile(draws, ENDS, axis=0)
    return np.asarray(low), np.asarray(high)


def means(
    values: Array,  # example …
) -> tuple[Array, Array, Array]:
    """The mean over examples and its 95 % interval, Student's; NaN where there is none, or only one."""
    from scipy.special import stdtrit

    there = np.isfinite(values)
    n = there.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, values, 0.0).sum(0) / n
        square = np.where(there, values - mean, 0.0) ** 2
        reach = stdtrit(np.maximum(n - 1, 1), 0.975) * np.sqrt(square.sum(0) / (n - 1) / n)
        reach = np.where(n > 1, reach, np.nan)
    return mean, mean - reach, mean + reach
