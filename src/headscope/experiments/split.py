"""Dividing one set of pairs into two that share no text."""

import random
from collections.abc import Sequence

from headscope.core.example import Example


def by_text(examples: Sequence[Example], share: float, seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Two parts, the second about `share` of all, with no text in both: pairs that share a text stay together.

    A question that is asked of several sentences, and a sentence that several questions are asked of, would otherwise
    be learned and scored.

    >>> pairs = [Example(str(place), f"question {place}", f"sentence {place // 2}") for place in range(10)]
    >>> learned, held = by_text(pairs, 0.2)
    >>> len(learned), len(held), {each.pair for each in learned} & {each.pair for each in held}
    (8, 2, set())
    """
    groups = _together(examples)
    order = sorted(groups)
    random.Random(seed).shuffle(order)
    held: set[int] = set()
    for key in order:
        if len(held) + len(groups[key]) / 2 < share * len(examples):
            held.update(groups[key])
    return (
        [each for place, each in enumerate(examples) if place not in held],
        [each for place, each in enumerate(examples) if place in held],
    )


def _together(examples: Sequence[Example]) -> dict[int, list[int]]:
    """Places of examples that hang together by a text, each group under its first place."""
    parent = list(range(len(examples)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[tuple[str, str], int] = {}
    for place, each in enumerate(examples):
        for key in (("text", each.text), ("pair", each.pair or "")):
            if key[1]:
                one, other = root(first.setdefault(key, place)), root(place)
                parent[max(one, other)] = min(one, other)
    groups: dict[int, list[int]] = {}
    for place in range(len(examples)):
        groups.setdefault(root(place), []).append(place)
    return groups
