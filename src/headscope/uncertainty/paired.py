"""Paired comparisons of two runs on the same examples: the interval of a change, and tests of it.

A score is a function of sums over examples of a few statistics of each: the accuracy of the number of right answers and
the number of all, a correlation of the sums of products. `statistics` are those of each example, `from_sums` is the
function.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from headscope.core.errors import DataWarning
from headscope.uncertainty.bootstrap import CELLS, bootstrap_sums
from headscope.uncertainty.corrections import LEVEL
from headscope.uncertainty.intervals import CONFIDENCE, Array

FromSums = Callable[[Array], Array]
"""From sums `… statistic` to scores `…`."""

PERMUTATIONS = 9_999
"""The fewest permutations of a test."""

MAX_PERMUTATIONS = 1_000_000
"""The most permutations of a test, enough for 10,000 tests that are corrected together."""

MARGIN = 5
"""The smallest corrected p-value that permutations can give is the level over this, as far as they are bounded."""


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
    first, moved = (bootstrap_sums(scores, draws=draws, seed=seed) for scores in (before, after - before))
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


def count_permutations(tests: int, level: float = LEVEL) -> int:
    """Return how many permutations a test needs if its p-value is corrected for a number of tests.

    No p-value of m permutations is below 1 / (m + 1). Among 500 tests 9,999 permutations could not show anything.

    >>> count_permutations(72), count_permutations(500)
    (9999, 49999)
    """
    return min(max(PERMUTATIONS, math.ceil(MARGIN * tests / level) - 1), MAX_PERMUTATIONS)


def permutation_test(
    before: Array,  # example statistic
    after: Array,  # example … statistic
    from_sums: FromSums,
    *,
    permutations: int | None = None,
    tests: int | None = None,
    seed: int = 0,
) -> Array:
    """Return the two-sided p-value of a paired permutation test of the change of a score.

    If the runs are equally good, swapping their answers to an example changes nothing. Examples are swapped at random,
    each with probability 1/2; p is the share of permutations whose change is at least as large, the observed one
    included. It is NaN where the observed change is.

    `tests` is the number of tests for which the p-values will be corrected, by default the number of runs. All runs
    have 9,999 permutations; where this number demands more (`count_permutations`), runs with p ≤ 0.05 have more. Such a
    p-value is as valid as one of a fixed number: below 0.05 it is that of all permutations, above it that of the first.
    With `permutations`, that many are made for all.
    """
    shape = after.shape[1:-1]
    flat = after.reshape(len(after), -1, after.shape[-1])  # example run statistic
    tests = flat.shape[1] if tests is None else tests
    first = PERMUTATIONS if permutations is None else permutations
    total = count_permutations(tests) if permutations is None else permutations
    random = np.random.default_rng(seed)
    extreme = _count_extreme(before, flat, from_sums, first, random)
    p = (1 + extreme) / (1 + first)
    if total > first and (small := p <= LEVEL).any():
        extreme[small] += _count_extreme(before, flat[:, small], from_sums, total - first, random)
        p[small] = (1 + extreme[small]) / (1 + total)
    _warn_blunt(tests, total, asked=permutations is not None)
    return p.reshape(shape)


def _count_extreme(
    before: Array,  # example statistic
    after: Array,  # example run statistic
    from_sums: FromSums,
    permutations: int,
    random: np.random.Generator,
) -> Array:
    """Return in how many permutations the change is at least as large as the observed one; NaN without one."""
    totals = before.sum(0), after.sum(0)
    observed = np.abs(from_sums(totals[1]) - from_sums(totals[0]))
    difference = (before[:, None] - after).reshape(len(after), -1)
    extreme = np.zeros(after.shape[1])
    batch = max(1, CELLS // max(len(after), difference.shape[1]))
    for start in range(0, permutations, batch):
        swapped = random.integers(0, 2, (min(batch, permutations - start), len(after)), dtype=np.int8)
        moved = (swapped.astype(float) @ difference).reshape(-1, *after.shape[1:])
        change = np.abs(from_sums(totals[1] + moved) - from_sums(totals[0] - moved))
        # equal ones count, whatever the rounding; undefined ones too
        extreme += (~(change < observed * (1 - 1e-9))).sum(0)
    return np.where(np.isnan(observed), np.nan, extreme)


def _warn_blunt(tests: int, permutations: int, *, asked: bool) -> None:
    """Say so where no corrected p-value can be below the level."""
    smallest = tests / (permutations + 1)
    if smallest >= LEVEL and not asked:
        warnings.warn(
            f"{tests:,} tests are corrected together, and after {permutations:,} permutations no corrected p-value can "
            f"be below {smallest:.2g}, so that none can be significant. Test fewer heads together.",
            DataWarning,
            stacklevel=3,
        )
