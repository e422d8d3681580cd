"""Distances within and between groups, with a permutation test."""

from typing import Any, NamedTuple

import numpy as np

from headscope.uncertainty.bootstrap import CELLS
from headscope.uncertainty.intervals import Array
from headscope.uncertainty.paired import PERMUTATIONS


class GroupDistances(NamedTuple):
    """Mean distance of two members of one group and of two groups, and the p-value of a permutation test."""

    within: float
    between: float
    p: float


def compare_groups(
    distances: Array,  # member other
    groups: Any,  # member
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> GroupDistances:
    """Compare distances within groups with those between groups; NaN where there is no pair of either kind.

    If groups say nothing about distances, members can be exchanged between groups. p is one-sided: the share of such
    permutations in which the mean distance between groups minus that within is at least the observed one, which is
    counted with them.

    >>> points = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> result = compare_groups(np.abs(points[:, None] - points), [0, 0, 0, 1, 1, 1])
    >>> round(result.within, 3), round(result.between, 3), result.p < 0.2
    (1.333, 10.0, True)
    """
    member = np.unique(np.asarray(groups), return_inverse=True)[1]
    indicators = np.eye(member.max() + 1)[member]  # member group
    upper = np.triu(distances, 1)
    table = upper + upper.T
    pairs = indicators.sum(0) @ indicators.sum(0) - len(member)
    others = len(member) ** 2 - len(member) - pairs
    if not pairs or not others:
        within, between = (float(table.sum() / count) if count else np.nan for count in (pairs, others))
        return GroupDistances(within, between, np.nan)
    observed = _sum_within(table, indicators[None])[0]
    random, extreme = np.random.default_rng(seed), 0
    batch = max(1, CELLS // indicators.size)
    for start in range(0, permutations, batch):
        order = random.permuted(np.tile(np.arange(len(member)), (min(batch, permutations - start), 1)), axis=1)
        # the numbers of pairs and the sum of all distances stay, so a larger difference is a smaller sum within
        extreme += int((_sum_within(table, indicators[order]) <= observed + 1e-9 * abs(observed)).sum())
    within, between = float(observed / pairs), float((table.sum() - observed) / others)
    return GroupDistances(within, between, (1 + extreme) / (1 + permutations))


def _sum_within(table: Array, indicators: Array) -> Array:
    """Return the sum of distances within groups, both ways, for each assignment `draw member group`."""
    return np.asarray(((table @ indicators) * indicators).sum((1, 2)))
