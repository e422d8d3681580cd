"""Comparing cell by cell, with scipy's own tests and the corrections as their papers put them."""

import numpy as np
from scipy import stats


def paired(a, b):
    """Difference, ends of the interval and p of one cell; an example counts where both have a value."""
    both = ~np.isnan(a) & ~np.isnan(b)
    found = stats.ttest_rel(b[both], a[both])
    low, high = found.confidence_interval(0.95)
    return np.mean(b[both] - a[both]), low, high, found.pvalue


def unpaired(a, b):
    """The same by Welch's test."""
    found = stats.ttest_ind(b[~np.isnan(b)], a[~np.isnan(a)], equal_var=False)
    low, high = found.confidence_interval(0.95)
    return np.nanmean(b) - np.nanmean(a), low, high, found.pvalue


def holm(p):
    """Reject from the smallest on while p ≤ level / (number left); the adjusted p is the least level that rejects."""
    order = sorted(range(len(p)), key=lambda place: p[place])
    found = [0.0] * len(p)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[place]))
        found[place] = largest
    return found
