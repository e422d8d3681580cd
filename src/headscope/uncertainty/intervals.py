"""Student's confidence interval of a mean over examples."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
CONFIDENCE = 0.95


def student_margin(sd: Array, n: Array, confidence: float = CONFIDENCE) -> Array:
    """Return half the width of the interval, t · sd / √n; NaN where n < 2."""
    from scipy.special import stdtrit

    with np.errstate(invalid="ignore", divide="ignore"):
        margin = stdtrit(np.maximum(n - 1, 1), (1 + confidence) / 2) * sd / np.sqrt(n)
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
    return mean, mean - margin, mean + margin
