"""Bootstrap over examples: resampled means and percentile intervals."""

import numpy as np

from headscope.uncertainty.intervals import CONFIDENCE, Array

DRAWS = 500


def bootstrap_means(
    values: Array,  # example …
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Array:
    """Return the means of examples resampled with replacement, `draw …`; NaN values are left out.

    All columns of an example are drawn together, so that differences between columns stay paired.
    """
    count = len(values)
    if not count:
        return np.full((draws, *values.shape[1:]), np.nan)
    times = np.random.default_rng(seed).multinomial(count, [1 / count] * count, size=draws).astype(np.float64)
    flat = values.reshape(count, -1)
    finite = np.isfinite(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Array = times @ np.where(finite, flat, 0.0) / (times @ finite)
    return means.reshape(draws, *values.shape[1:])


def percentile_interval(
    draws: Array,  # draw …
    confidence: float = CONFIDENCE,
) -> tuple[Array, Array]:
    """Return the ends of the percentile interval over the first axis."""
    tail = 50 * (1 - confidence)
    low, high = np.percentile(draws, (tail, 100 - tail), axis=0)
    return np.asarray(low), np.asarray(high)
