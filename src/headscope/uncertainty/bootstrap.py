"""Bootstrap over examples: resampled means, counts and metrics, and percentile intervals."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headscope.uncertainty.intervals import CONFIDENCE, Array

DRAWS = 500
CELLS = 2_000_000
"""Number of values resampled at a time, which bounds the memory."""


def resample_counts(counts: Any, *, draws: int = DRAWS, seed: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return tables of counts of resampled observations, `draw …`; the total stays the same.

    A table of ones gives how often each observation is drawn.
    """
    counts = np.asarray(counts)
    total = int(counts.sum())
    resampled = np.random.default_rng(seed).multinomial(total, counts.ravel() / total, size=draws)
    return resampled.reshape(draws, *counts.shape)


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
    times = resample_counts(np.ones(count), draws=draws, seed=seed).astype(np.float64)
    flat = values.reshape(count, -1)
    finite = np.isfinite(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Array = times @ np.where(finite, flat, 0.0) / (times @ finite)
    return means.reshape(draws, *values.shape[1:])


def bootstrap_metric(
    metric: Callable[..., Array],  # from columns of shape (draw, example) to one value per draw
    *columns: Array,
    draws: int = DRAWS,
    seed: int = 0,
) -> Array:
    """Return a metric of examples resampled with replacement, one value per draw.

    All columns are drawn together. Draws are made in batches, which bounds the memory.
    """
    indices = _draw_indices(len(columns[0]), draws, seed)
    return np.concatenate([metric(*(column[index] for column in columns)) for index in indices])


def bootstrap_sums(values: Array, *, draws: int = DRAWS, seed: int = 0) -> Array:
    """Return the sums of examples resampled with replacement, `draw …`, in the same draws as `bootstrap_metric`."""
    count, sums = len(values), []
    for index in _draw_indices(count, draws, seed):
        cells = index + count * np.arange(len(index))[:, None]
        times = np.bincount(cells.ravel(), minlength=index.size).reshape(index.shape)
        sums.append(times.astype(np.float64) @ values.reshape(count, -1))
    return np.concatenate(sums).reshape(draws, *values.shape[1:])


def _draw_indices(count: int, draws: int, seed: int) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Yield the indices of resampled examples, `draw example`, in batches."""
    random, batch = np.random.default_rng(seed), max(1, CELLS // count)
    for start in range(0, draws, batch):
        yield random.integers(0, count, (min(batch, draws - start), count))


def percentile_interval(
    draws: Array,  # draw …
    confidence: float = CONFIDENCE,
    *,
    axis: int = 0,
    ignore_nan: bool = False,
) -> tuple[Array, Array]:
    """Return the ends of the percentile interval along an axis.

    An interval of draws with NaN is NaN; with `ignore_nan`, these draws are left out.
    """
    tail = round(50 * (1 - confidence), 9)
    if ignore_nan and np.isnan(draws).all():
        empty = np.full(np.delete(draws.shape, axis), np.nan)
        return empty, empty
    percentile = np.nanpercentile if ignore_nan else np.percentile
    low, high = percentile(draws, (tail, 100 - tail), axis=axis)
    return np.asarray(low), np.asarray(high)
