"""Classification metrics, over many resampled sets at once, and their bootstrap intervals.

The functions have the names of scikit-learn's. Confusion matrices may have leading axes, such as bootstrap draws.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from headscope.uncertainty.bootstrap import percentile_interval, resample_counts
from headscope_patterns.labels.labelled_maps import Array

DRAWS = 2000
BINS = 10


def confusion_matrix(
    labels: Array, predicted: Array, shape: tuple[int, int], sample_weight: Array | None = None
) -> Array:
    """Count the pairs of label and prediction; with a `sample_weight` of draw map, for every draw.

    >>> confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), (2, 2)).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    cells = np.eye(shape[0] * shape[1])[labels * shape[1] + predicted]
    weight = np.ones(len(labels)) if sample_weight is None else sample_weight
    matrix: Array = (weight @ cells).reshape(*weight.shape[:-1], *shape)
    return matrix


def precision_recall_f1(confusion: Array) -> tuple[Array, Array, Array]:
    """Return precision, recall and F1 of every class; NaN where undefined.

    Columns beyond the classes, such as `unsure`, are errors.
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    labels, predicted = confusion.sum(-1), confusion.sum(-2)[..., : right.shape[-1]]
    with np.errstate(invalid="ignore", divide="ignore"):
        return right / predicted, right / labels, 2 * right / (labels + predicted)


def macro_f1(confusion: Array) -> Array:
    """Return the mean F1 of the classes that have labels; NaN where none has."""
    scores, labelled = precision_recall_f1(confusion)[2], confusion.sum(-1) > 0
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(labelled, scores, 0).sum(-1) / labelled.sum(-1))


def cohen_kappa(confusion: Array) -> Array:
    """Return Cohen's kappa: agreement beyond chance."""
    total = confusion.sum((-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.trace(confusion, axis1=-2, axis2=-1) / total
        chance = (confusion.sum(-1) * confusion.sum(-2)).sum(-1) / total**2
        return np.asarray((observed - chance) / (1 - chance))


def resample_clusters(clusters: Sequence[str], *, seed: int = 0, draws: int = DRAWS) -> Array:
    """Return how often each map is drawn, draw map, when whole clusters are resampled with replacement."""
    names, cluster = np.unique(np.array(clusters, dtype=np.str_), return_inverse=True)
    counts: Array = resample_counts(np.ones(len(names)), draws=draws, seed=seed)[:, cluster].astype(float)
    return counts


def widest_interval(resampled: Iterable[Array]) -> tuple[float, float]:
    """Return the widest 95 % percentile interval, of several bootstraps of one number."""
    intervals = [percentile_interval(values, ignore_nan=True) for values in resampled]
    low, high = max(intervals, key=lambda ends: float(ends[1] - ends[0]))
    return float(low), float(high)


def calibration_curve(confidence: Array, right: Array, bins: int = BINS) -> tuple[Array, Array, Array]:
    """Return the mean confidence, the accuracy and the count in bins of equal width; NaN in empty bins."""
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    counts = np.bincount(index, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean, accuracy = (np.bincount(index, values, minlength=bins) / counts for values in (confidence, right * 1.0))
    return mean, accuracy, counts


def calibration_error(confidence: Array, right: Array) -> float:
    """Return the expected calibration error: the mean difference of confidence and accuracy over bins."""
    mean, accuracy, counts = calibration_curve(confidence, right)
    return float(np.nansum(np.abs(mean - accuracy) * counts) / max(1, counts.sum()))
