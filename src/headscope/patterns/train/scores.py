"""How well two ways of giving classes agree, and how sure that number is."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
DRAWS = 2000
BINS = 10


def confusion(labels: Array, predicted: Array, shape: tuple[int, int], weights: Array | None = None) -> Array:
    """How often each label met each prediction; with `weights`, draw map, once for every draw.

    >>> confusion(np.array([0, 0, 1]), np.array([0, 1, 1]), (2, 2)).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    cells = np.eye(shape[0] * shape[1])[labels * shape[1] + predicted]
    whole = np.ones(len(labels)) if weights is None else weights
    found: Array = (whole @ cells).reshape(*whole.shape[:-1], *shape)
    return found


def precision_recall_f1(table: Array) -> tuple[Array, Array, Array]:
    """Of every class of a confusion, label by prediction; NaN where there is nothing to divide by.

    Columns beyond the classes, such as `unsure`, are errors.
    """
    right = np.diagonal(table, axis1=-2, axis2=-1)
    labels, predicted = table.sum(-1), table.sum(-2)[..., : right.shape[-1]]
    with np.errstate(invalid="ignore", divide="ignore"):
        return right / predicted, right / labels, 2 * right / (labels + predicted)


def macro_f1(table: Array) -> Array:
    """The mean F1 of those classes that have a label; NaN where none has."""
    scores, there = precision_recall_f1(table)[2], table.sum(-1) > 0
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, scores, 0).sum(-1) / there.sum(-1))


def kappa(table: Array) -> Array:
    """Cohen's kappa: agreement beyond chance."""
    whole = table.sum((-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        seen = np.trace(table, axis1=-2, axis2=-1) / whole
        chance = (table.sum(-1) * table.sum(-2)).sum(-1) / whole**2
        return np.asarray((seen - chance) / (1 - chance))


def draws(clusters: Sequence[str], *, seed: int, many: int = DRAWS) -> Array:
    """How often each map is drawn when whole clusters are drawn with replacement: draw map."""
    _, place = np.unique(np.array(clusters, dtype=np.str_), return_inverse=True)
    held = place.max() + 1
    random = np.random.default_rng(seed)
    times = random.multinomial(held, np.full(held, 1 / held), size=many)
    found: Array = times[:, place].astype(float)
    return found


def interval(values: Sequence[Array]) -> tuple[float, float]:
    """The 95 % interval of drawn values; of several ways to draw, that of the widest interval."""
    ends = [np.nanpercentile(each, [2.5, 97.5]) for each in values]
    low, high = max(ends, key=lambda each: each[1] - each[0])
    return float(low), float(high)


def reliability(confidence: Array, right: Array, bins: int = BINS) -> tuple[Array, Array, Array]:
    """In bins of like confidence: its mean, the share that is right, and how many; NaN where none is."""
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    counts = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(place, each, minlength=bins) / counts for each in (confidence, right.astype(float))]
    return means[0], means[1], counts


def calibration_error(confidence: Array, right: Array) -> float:
    """The mean distance between confidence and the share that is right, over bins (ECE)."""
    said, true, counts = reliability(confidence, right)
    return float(np.nansum(np.abs(said - true) * counts) / max(1, counts.sum()))
