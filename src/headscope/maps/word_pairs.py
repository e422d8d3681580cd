"""Pairs of words that stand in a relation, such as a verb and its subject."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example

ALL = "all"
"""The name that stands for every relation."""

WordPair = tuple[int, int, str]
"""The numbers of word i and word j, from 0, and their relation."""


def list_word_pairs(example: Example) -> list[WordPair]:
    """Return the related words of an example: those of its column `word_pairs`, or each word with its head in a tree.

    >>> example = Example("0", "Cats sleep.", columns={"heads": (1, -1), "relations": ("nsubj", "root")})
    >>> list_word_pairs(example)
    [(0, 1, 'nsubj')]
    """
    if "word_pairs" in example.columns:
        return [(int(first), int(second), str(relation)) for first, second, relation in example.columns["word_pairs"]]
    if "heads" not in example.columns or "relations" not in example.columns:
        raise InputError(
            f"Example '{example.id}' does not say which words are related: it has neither the column word_pairs nor "
            "heads and relations. Read a treebank (trees.conllu) or a table of word pairs (word_pairs@pairs.tsv)."
        )
    trees = zip(example.columns["heads"], example.columns["relations"], strict=True)
    return [(word, int(head), str(relation)) for word, (head, relation) in enumerate(trees) if int(head) >= 0]


def has_name(relation: str, name: str) -> bool:
    """Return whether a relation is of this name, or a subtype of it: nsubj:pass is an nsubj, and `all` is any.

    >>> has_name("nsubj:pass", "nsubj"), has_name("obj", "nsubj"), has_name("obj", "all")
    (True, False, True)
    """
    return name in (ALL, relation, relation.partition(":")[0])


def mark_word_pairs(
    examples: Sequence[Example], names: Sequence[str], words: Int[Tensor, "batch word"]
) -> Float[Tensor, "batch name word other"]:
    """Return how often word i and word j are related, for each name of a relation.

    `words` are the numbers of the words along the axes of a map, -1 for what is no word. A pair of which a word is not
    there, because the text was truncated, is left out.
    """
    width = words.shape[1]
    marks = torch.zeros(len(examples), len(names), width, width)
    for row, (example, word_numbers) in enumerate(zip(examples, words.tolist(), strict=True)):
        positions = {number: position for position, number in enumerate(word_numbers) if number >= 0}
        for first, second, relation in list_word_pairs(example):
            if first in positions and second in positions:
                for index, name in enumerate(names):
                    marks[row, index, positions[first], positions[second]] += has_name(relation, name)
    return marks
