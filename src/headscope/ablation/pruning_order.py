"""In which order heads are pruned: the least important first, or at random."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.core.errors import InputError


@dataclass(frozen=True)
class Head:
    """One head of a model."""

    site: str
    layer: int
    head: int
    name: str


def list_heads(counts: Mapping[str, Sequence[int]], sites: Sequence[str], missing: Iterable[str] = ()) -> list[Head]:
    """Return all heads at some sites, without those that are missing; `counts` are the heads of each layer, by site."""
    gone, many_sites = set(missing), len(counts) > 1
    heads = [
        Head(site, layer, head, f"{site}.L{layer}H{head}" if many_sites else f"L{layer}H{head}")
        for site in sites
        for layer, count in enumerate(counts[site])
        for head in range(count)
    ]
    return [head for head in heads if head.name not in gone]


def rank_heads(heads: Sequence[Head], importance: Mapping[str, Float[np.ndarray, "layer head"]]) -> list[Head]:
    """Return the heads from the least to the most important; equal ones in the order of layers and heads."""
    return sorted(heads, key=lambda head: float(importance[head.site][head.layer, head.head]))


def shuffle_heads(heads: Sequence[Head], seed: int) -> list[Head]:
    """Return the heads in a random order."""
    order = np.random.default_rng(seed).permutation(len(heads))
    return [heads[index] for index in order]


def extend_pruned(pruned: Sequence[Head], ranked: Sequence[Head], count: int, keep: int) -> list[Head]:
    """Return `count` heads: those pruned so far, and the first of `ranked` that leave `keep` heads in each layer."""
    left = Counter((head.site, head.layer) for head in ranked)
    left.subtract((head.site, head.layer) for head in pruned)
    extended = list(pruned)
    for head in ranked:
        if len(extended) == count:
            break
        if head not in pruned and left[head.site, head.layer] > keep:
            extended.append(head)
            left[head.site, head.layer] -= 1
    return extended


def plan_steps(heads: Sequence[Head], steps: Any, keep: Any) -> dict[float, int]:
    """Return the number of heads to prune for each percentage of them, as far as `keep` heads in each layer allow."""
    if isinstance(steps, bool) or not isinstance(steps, int | float) or not 0 < steps <= 100:
        raise InputError(f"steps is a percentage of all heads, above 0 and up to 100, but got {steps!r}.")
    sizes = Counter((head.site, head.layer) for head in heads)
    if isinstance(keep, bool) or not isinstance(keep, int) or not 0 <= keep < max(sizes.values()):
        raise InputError(
            f"keep is the number of heads that each layer keeps, from 0 to {max(sizes.values()) - 1} here, but got "
            f"{keep!r}."
        )
    prunable = sum(max(0, size - keep) for size in sizes.values())
    shares = [float(share) for share in np.arange(0, 100 + steps / 2, steps) if share <= 100]
    counts = {share: round(share * len(heads) / 100) for share in shares}
    return {share: count for share, count in counts.items() if count <= prunable}
