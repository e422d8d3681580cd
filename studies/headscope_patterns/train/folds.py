"""Cross-validation folds in which no test map shares its head or its text with a training map."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from headscope.core.errors import InputError
from headscope_patterns.labels.labelled_maps import Array, Source

MIN_TRAINING = 0.6
"""The share of all maps that should be left for training."""


@dataclass(frozen=True)
class Fold:
    """Indices of the test maps and of the training maps, which have other heads and other texts."""

    test: Array
    train: Array


def split_folds(sources: Sequence[Source], labels: Sequence[str], count: int = 5, *, seed: int = 0) -> list[Fold]:
    """Return about `count` folds in which every map is tested once; more where many heads share texts.

    Maps connected by heads and texts stay together where that leaves folds of similar size. Otherwise folds have
    disjoint heads, or disjoint texts, whichever leaves more training maps, and training maps that share a text (head)
    with a test map are dropped. Where that would drop too many, a fold is tested in parts, each with its own training.
    """
    heads, texts = (_encode(groups) for groups in ([s.head_group for s in sources], [s.text_group for s in sources]))
    if min(heads.max(), texts.max()) + 1 < count:
        raise InputError(
            f"{count} folds need maps of at least {count} heads and {count} texts, but these are of {heads.max() + 1} "
            f"heads and {texts.max() + 1} texts. Ask for fewer folds, or label maps of more."
        )
    best: list[Fold] = []
    for parts in (1, 2, 3, 5):
        for own, other in ((heads, texts), (texts, heads)):
            fold = _assign_folds(_group(own, other, count), _encode(labels), count, seed)
            tests = [part for index in range(count) for part in _split(np.flatnonzero(fold == index), other, parts)]
            best = max(best, [_make_fold(test, heads, texts) for test in tests], key=mean_training_size)
        if mean_training_size(best) >= MIN_TRAINING * len(sources):
            break
    if min(len(fold.train) for fold in best) == 0:
        raise InputError(
            "These maps cannot be split so that test and training share no head and no text: some head or text is in "
            "nearly all of them. Label maps of more heads and more texts."
        )
    return best


def add_tests(folds: Sequence[Fold], sources: Sequence[Source], added: Array) -> list[Fold]:
    """Return the folds with further test maps, which are not trained on: each in a fold without its head and text.

    Maps for which there is no such fold are tested together in one more, without all their heads and texts.
    """
    heads, texts = (_encode(groups) for groups in ([s.head_group for s in sources], [s.text_group for s in sources]))
    tests: list[list[int]] = [[] for _ in folds]
    rest: list[int] = []
    for index in added.tolist():
        at = [
            number
            for number, fold in enumerate(folds)
            if heads[index] not in heads[fold.train] and texts[index] not in texts[fold.train]
        ]
        (tests[at[index % len(at)]] if at else rest).append(index)
    longer = [
        Fold(np.concatenate([fold.test, np.array(more, dtype=int)]), fold.train)
        for fold, more in zip(folds, tests, strict=True)
    ]
    if not rest:
        return longer
    more = _make_fold(np.array(rest), heads, texts)
    more = Fold(more.test, np.setdiff1d(more.train, added))
    if not len(more.train):
        raise InputError(
            "Every map to train on shares its head or its text with a map of the part test. Label maps of more heads "
            "and more texts."
        )
    return [*longer, more]


def mean_training_size(folds: Sequence[Fold]) -> float:
    """Return the mean number of training maps over folds."""
    return float(np.mean([len(fold.train) for fold in folds])) if folds else 0.0


def _encode(names: Sequence[str]) -> Array:
    codes: Array = np.unique(np.array(names, dtype=np.str_), return_inverse=True)[1]
    return codes


def _group(own: Array, other: Array, count: int) -> Array:
    """Group maps that stay together: connected components, or one head (text) where a component exceeds a fold."""
    size = own.max() + 1
    links = coo_array((np.ones(len(own)), (own, size + other)), shape=(size + other.max() + 1,) * 2)
    component = connected_components(links, directed=False)[1][own]
    large = np.bincount(component)[component] > len(own) / count
    return np.unique(np.where(large, component.max() + 1 + own, component), return_inverse=True)[1]


def _assign_folds(groups: Array, labels: Array, count: int, seed: int) -> Array:
    """Return the fold of every map; the largest groups first, each to the fold where its classes are rarest."""
    counts = np.zeros((groups.max() + 1, labels.max() + 1))
    np.add.at(counts, (groups, labels), 1)
    order = np.random.default_rng(seed).permutation(len(counts))
    order = order[np.argsort(-counts[order].sum(1), kind="stable")]
    totals, fold = np.zeros((count, counts.shape[1])), np.zeros(len(counts), dtype=int)
    for group in order:
        cost = ((totals + counts[group]) ** 2 - totals**2) / counts.sum(0)
        fold[group] = int(cost.sum(1).argmin())
        totals[fold[group]] += counts[group]
    return fold[groups]


def _split(test: Array, other: Array, count: int) -> list[Array]:
    """Split the test maps of a fold into parts with disjoint texts (heads)."""
    values, counts = np.unique(other[test], return_counts=True)
    sizes, part_of_value = np.zeros(count), np.zeros(len(values), dtype=int)
    for index in np.argsort(-counts, kind="stable"):
        part_of_value[index] = sizes.argmin()
        sizes[part_of_value[index]] += counts[index]
    part = part_of_value[np.searchsorted(values, other[test])]
    return [test[part == index] for index in range(count) if (part == index).any()]


def _make_fold(test: Array, heads: Array, texts: Array) -> Fold:
    separate = ~np.isin(heads, heads[test]) & ~np.isin(texts, texts[test])
    return Fold(test, np.flatnonzero(separate))
