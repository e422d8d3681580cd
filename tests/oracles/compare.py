"""Compare results cell by cell, with the tests of scipy and the corrections as defined in their papers."""

import numpy as np
from scipy import stats


def paired(a, b):
    """Return difference, interval and p-value of one cell, from the examples that have a value in both."""
    both = ~np.isnan(a) & ~np.isnan(b)
    result = stats.ttest_rel(b[both], a[both])
    low, high = result.confidence_interval(0.95)
    return np.mean(b[both] - a[both]), low, high, result.pvalue


def unpaired(a, b):
    """Return the same by Welch's test."""
    result = stats.ttest_ind(b[~np.isnan(b)], a[~np.isnan(a)], equal_var=False)
    low, high = result.confidence_interval(0.95)
    return np.nanmean(b) - np.nanmean(a), low, high, result.pvalue


def holm(p):
    """Reject in ascending order while p ≤ level / (number left); adjusted p is the smallest level that rejects."""
    order = sorted(range(len(p)), key=lambda index: p[index])
    result = [0.0] * len(p)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        result[index] = largest
    return result
