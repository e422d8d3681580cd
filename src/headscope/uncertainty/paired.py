"""Paired comparisons of two runs on the same examples: the interval of a change, and tests of it.

A score is a function of sums over examples of a few statistics of each: the accuracy of the number of right answers and
the number of all, a correlation of the sums of products. `statistics` are those of each example, `from_sums` is the
function.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from headscope.uncertainty.bootstrap import CELLS, bootstrap_sums
from headscope.uncertainty.intervals import CONFIDENCE, Array

FromSums = Callable[[Array], Array]
"""From sums `… statistic` to scores `…`."""

PERMUTATIONS = 9_999
"""With fewer, no p-value could be small enough to be significant after a correction for hundreds of tests."""


def bootstrap_change(
    before: Array,  # example statistic
    after: Array,  # example … statistic
    from_sums: FromSums,
    *,
    draws: int,
    seed: int = 0,
) -> Array:
    """Return the change of a score over draws of examples, `draw …`; both runs are scored on the same draw."""
    before = before.reshape(len(before), *(1,) * (after.ndim - 2), -1)
    first, moved = (bootstrap_sums(part, draws=draws, seed=seed) for part in (before, after - before))
    return np.asarray(from_sums(first + moved) - from_sums(first))  # exactly 0 where no example changed


def least_margin(n: int, confidence: float = CONFIDENCE) -> float:
    """Return half the width of the interval of a change of accuracy if no prediction changed, z·√2 / (n + 2).

    By Bonett & Price (2012). A bootstrap of examples of which few or none change is too narrow, and has no width at all
    where none does.

    >>> round(least_margin(400), 4)
    0.0069
    """
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2)) * 2**0.5 / (n + 2)


def mcnemar_test(before: Any, after: Any) -> Array:
    """Return the exact two-sided p-value of McNemar's test for two runs that are right or wrong on each example.

    `before` has the axis `example`, `after` may have further ones, each of which is compared. If the runs are equally
    good, an example on which they differ is as likely to be right before as after: the p-value is that of a binomial
    distribution. Without any such example it is 1.

    >>> mcnemar_test(np.array([1, 1, 1, 1, 1, 0]), np.array([0, 0, 0, 0, 0, 0])).item()
    0.0625
    """
    from scipy.special import bdtr

    after = np.asarray(after, bool)
    before = np.asarray(before, bool).reshape(-1, *(1,) * (after.ndim - 1))
    lost, gained = (before & ~after).sum(0), (~before & after).sum(0)
    differing = np.maximum(lost + gained, 1)
    p = 2 * bdtr(np.minimum(lost, gained).astype(float), differing, 0.5)
    return np.asarray(np.where(lost + gained > 0, np.minimum(p, 1.0), 1.0))


def permutation_test(
    before: Array,  # example statistic
    after: Array,  # example … statistic
    from_sums: FromSums,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Array:
    """Return the two-sided p-value of a paired permutation test of the change of a score.

    If the runs are equally good, swapping their answers to an example changes nothing. Examples are swapped at random,
    each with probability 1/2; p is the share of permutations whose change is at least as large, the observed one
    included. It is NaN where the observed change is.
    """
    shape = after.shape[1:-1]
    flat = after.reshape(len(after), -1, after.shape[-1])  # example run statistic
    totals = before.sum(0), flat.sum(0)
    observed = np.abs(from_sums(totals[1]) - from_sums(totals[0]))
    difference = (before[:, None] - flat).reshape(len(flat), -1)
    random, extreme = np.random.default_rng(seed), np.zeros(flat.shape[1])
    batch = max(1, CELLS // max(len(flat), difference.shape[1]))
    for start in range(0, permutations, batch):
        swapped = random.integers(0, 2, (min(batch, permutations - start), len(flat)), dtype=np.int8)
        moved = (swapped.astype(float) @ difference).reshape(-1, *flat.shape[1:])
        change = np.abs(from_sums(totals[1] + moved) - from_sums(totals[0] - moved))
        extreme += (~(change < observed * (1 - 1e-9))).sum(
            0
        )  # equal ones are, whatever the rounding; undefined ones too
    p = (1 + extreme) / (1 + permutations)
    return np.where(np.isnan(observed), np.nan, p).reshape(shape)
