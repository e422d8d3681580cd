"""Cross-validation in which no test map shares its head or its text with a training map."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from headscope.core.errors import InputError
from headscope.patterns.labels.labelled import Source

Array = np.ndarray[Any, np.dtype[Any]]
ENOUGH = 0.6
"""The share of all maps that should be left to train on."""


@dataclass(frozen=True)
class Fold:
    """The places of the maps to test on, and of those to train on, which have other heads and other texts."""

    test: Array
    train: Array


def folds(sources: Sequence[Source], labels: Sequence[str], many: int = 5, *, seed: int = 0) -> list[Fold]:
    """About `many` folds in which every map is tested once; more where texts are shared between many heads.

    Maps that hang together by heads and texts stay together where that leaves folds of like size. Otherwise folds have
    heads of their own, or texts, whichever leaves more to train on, and training maps of a tested text, or head, are
    dropped. Where that would drop too many, a fold is tested in parts, each with a training of its own.
    """
    heads, texts = (_numbers(each) for each in (head_names(sources), text_names(sources)))
    if min(heads.max(), texts.max()) + 1 < many:
        raise InputError(
            f"{many} folds need maps of {many} heads and {many} texts at least, but these are of {heads.max() + 1} "
            f"heads and {texts.max() + 1} texts. Ask for fewer folds, or label maps of more."
        )
    best: list[Fold] = []
    for pieces in (1, 2, 3, 5):
        for own, other in ((heads, texts), (texts, heads)):
            parts = _assigned(_units(own, other, many), _numbers(labels), many, seed)
            tests = [each for part in range(many) for each in _pieces(np.flatnonzero(parts == part), other, pieces)]
            found = [_fold(test, heads, texts) for test in tests]
            best = max(best, found, key=left)
        if left(best) >= ENOUGH * len(sources):
            break
    if min(len(each.train) for each in best) == 0:
        raise InputError(
            "These maps cannot be split so that test and training share no head and no text: some head or text is in "
            "nearly all of them. Label maps of more heads and more texts."
        )
    return best


def head_names(sources: Sequence[Source]) -> list[str]:
    """Which head of which model each map is of."""
    return [each.group for each in sources]


def text_names(sources: Sequence[Source]) -> list[str]:
    """Which text each map is of."""
    return [f"{each.data} {each.text}" for each in sources]


def left(found: Sequence[Fold]) -> float:
    """How many maps are left to train on, in the mean over folds."""
    return float(np.mean([len(each.train) for each in found])) if found else 0.0


def _numbers(names: Sequence[str]) -> Array:
    found: Array = np.unique(np.array(names, dtype=np.str_), return_inverse=True)[1]
    return found


def _units(own: Array, other: Array, many: int) -> Array:
    """What stays together: all that hangs together, or one head (text) where that is more than a fold holds."""
    ends = own.max() + 1
    links = coo_array((np.ones(len(own)), (own, ends + other)), shape=(ends + other.max() + 1,) * 2)
    whole = connected_components(links, directed=False)[1][own]
    large = np.bincount(whole)[whole] > len(own) / many
    return np.unique(np.where(large, whole.max() + 1 + own, whole), return_inverse=True)[1]


def _assigned(units: Array, labels: Array, many: int, seed: int) -> Array:
    """The fold of every map; the largest units first, each where its classes are rarest."""
    counts = np.zeros((units.max() + 1, labels.max() + 1))
    np.add.at(counts, (units, labels), 1)
    order = np.random.default_rng(seed).permutation(len(counts))
    order = order[np.argsort(-counts[order].sum(1), kind="stable")]
    held, place = np.zeros((many, counts.shape[1])), np.zeros(len(counts), dtype=int)
    for unit in order:
        more = ((held + counts[unit]) ** 2 - held**2) / counts.sum(0)
        place[unit] = int(more.sum(1).argmin())
        held[place[unit]] += counts[unit]
    return place[units]


def _pieces(test: Array, other: Array, many: int) -> list[Array]:
    """A fold's maps in so many parts, each with texts (heads) of its own."""
    given, counts = np.unique(other[test], return_counts=True)
    sizes, place = np.zeros(many), {}
    for each in np.argsort(-counts, kind="stable"):
        place[given[each]] = smallest = int(sizes.argmin())
        sizes[smallest] += counts[each]
    part = np.array([place[each] for each in other[test]])
    return [test[part == each] for each in range(many) if (part == each).any()]


def _fold(test: Array, heads: Array, texts: Array) -> Fold:
    apart = ~np.isin(heads, heads[test]) & ~np.isin(texts, texts[test])
    return Fold(test, np.flatnonzero(apart))
