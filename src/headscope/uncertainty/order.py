"""Intervals of the smallest of several differences, which hold where some of them are tied.

Bootstrap draws of a smallest value are biased where several are nearly equal: each draw takes the one that happens
to be lowest. Here the interval follows from those of the differences.
"""

import numpy as np

from headscope.uncertainty.corrections import simultaneous_factor
from headscope.uncertainty.intervals import Array


def smallest_interval(values: Array, margins: Array, n: int, *, rank: int = 1) -> tuple[Array, Array, Array]:
    """Return the smallest of several differences along the last axis with its 95 % interval; or that of a `rank`.

    `margins` are half the widths of the 95 % intervals of the differences, each of means of `n` values. The lower end
    is wrong only if one of `rank` intervals is, the upper end only if one of those that are at least as large is; each
    is widened for so many.

    >>> [round(float(end), 3) for end in smallest_interval(np.array([0.3, 0.1]), np.array([0.1, 0.1]), 100)]
    [0.1, 0.0, 0.215]
    """
    at, total = rank - 1, values.shape[-1]
    down, up = (simultaneous_factor(count, n) for count in (rank, total - rank + 1))
    ends = (values, values - down * margins, values + up * margins)
    value, low, high = (np.sort(end, -1)[..., at] for end in ends)
    return value, low, high
