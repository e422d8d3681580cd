"""Anaphors: mentions that refer to what another mention refers to, and the mentions that they may refer to."""

from dataclasses import dataclass

from headscope.core.example import Example
from headscope.data.coreference.mentions import Mention, list_mentions


@dataclass(frozen=True)
class Anaphor:
    """A mention with its candidates, the nearest first, and whether the head word of each is a right answer."""

    mention: Mention
    candidates: tuple[Mention, ...]
    right: tuple[bool, ...]


def list_anaphors(example: Example) -> list[Anaphor]:
    """Return every mention with an antecedent in the example, with all mentions before it as candidates.

    A mention is before another if its head word is. Where several mentions share a head word, that word is a right
    answer if one of them refers to the same entity. Where the example has a column `anaphors`, the numbers of mentions,
    only these are returned, with all other mentions as candidates, also those behind. A mention without a right
    candidate is left out.

    >>> mentions = ((0, 0, "Ann", "person"), (2, 2, "Eve", "person"), (3, 3, "Ann", "person"))
    >>> example = Example("0", "", words=("Ann", "told", "Eve", "she", "won"), columns={"mentions": mentions})
    >>> [(anaphor.mention.head, anaphor.right) for anaphor in list_anaphors(example)]
    [(3, (False, True))]
    """
    mentions = list_mentions(example)
    listed = example.columns.get("anaphors")
    anaphors = []
    for number in range(len(mentions)) if listed is None else listed:
        mention = mentions[number]
        others = [other for other in mentions if other.head != mention.head]
        candidates = others if listed is not None else [other for other in others if other.head < mention.head]
        candidates.sort(key=lambda other: (abs(other.head - mention.head), other.head, other.first, other.last))
        right_heads = {other.head for other in candidates if other.entity == mention.entity}
        if right_heads:
            right = tuple(other.head in right_heads for other in candidates)
            anaphors.append(Anaphor(mention, tuple(candidates), right))
    return sorted(anaphors, key=lambda anaphor: (anaphor.mention.head, anaphor.mention.first, anaphor.mention.last))
