"""Words and their syntactic heads: what probes of syntax predict, a control of it, and answers at fixed offsets."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.maps import Maps
from headscope.core.prose import join_words
from headscope.maps.word_pairs import ALL

OFFSETS = tuple(offset for offset in range(-20, 21) if offset)
"""Distances from a word to its predicted head, in words, that are tried as a baseline."""

NEXT = OFFSETS.index(1)
"""The right-branching baseline: the head is the next word."""

HeadsOf = Callable[[Example], Sequence[int]]
"""Returns the number of each word's head, -1 for none."""


def read_heads(example: Example) -> Sequence[int]:
    """Return the number of the head of each word, -1 for the root."""
    if "heads" not in example.columns or "relations" not in example.columns or example.words is None:
        raise InputError(
            f"Example '{example.id}' has no syntactic tree: it needs words, heads and relations. Read a treebank "
            "(trees.conllu)."
        )
    return tuple(map(int, example.columns["heads"]))


def list_relations(train: Iterable[Example], test: Iterable[Example], min_count: int) -> dict[str, int]:
    """Return the relations that occur at least `min_count` times with their counts, most frequent first; `all` leads.

    A relation that does not occur in both parts is left out: there would be nothing to choose by, or to report.

    >>> tree = Example("0", "Cats sleep", words=("Cats", "sleep"), columns={"heads": (1, -1), "relations": "sr"})
    >>> list_relations([tree], [tree], 2)
    {'all': 2, 's': 2}
    """
    split_counts = [_count_relations(split) for split in (train, test)]
    counts = split_counts[0] + split_counts[1]
    shared = split_counts[0].keys() & split_counts[1].keys()
    frequent = {name: count for name, count in counts.most_common() if count >= min_count and name in shared}
    if not frequent:
        most = join_words((f"{name} ({count})" for name, count in counts.most_common(3)), limit=3)
        raise InputError(
            f"No relation occurs at least {min_count} times; the most frequent: {most}. Give more sentences, or a "
            "smaller min_count."
        )
    return {ALL: counts.total(), **frequent}


def check_counted(words: int, split: str) -> None:
    """Raise InputError if no word of the training or test documents could be counted."""
    if not words:
        raise InputError(
            f"No word of the {split} documents was left with its head, and with that of the control task, when texts "
            "were truncated, so there is nothing to probe. Give shorter sentences, or a larger max_length."
        )


def _count_relations(examples: Iterable[Example]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for example in examples:
        heads = read_heads(example)
        counts.update(name for name, head in zip(example.columns["relations"], heads, strict=True) if head >= 0)
    return counts


@dataclass(frozen=True)
class ControlHeads:
    """A control task (Hewitt & Liang, 2019): every word form has one offset to its head, drawn at random.

    Offsets are drawn from those of the real heads, so that a fixed offset is as good a guess as it can be, and no
    syntax helps. An offset that leaves the sentence is taken in the other direction, or ends at its first or last word.
    """

    offsets: Int[np.ndarray, " word"]  # sorted
    seed: int

    @classmethod
    def draw(cls, examples: Iterable[Example], seed: int) -> "ControlHeads":
        """Return a control task with the offsets of these trees."""
        trees = [np.array(read_heads(example)) for example in examples]
        offsets = [heads[heads >= 0] - np.flatnonzero(heads >= 0) for heads in trees]
        return cls(np.sort(np.concatenate(offsets)), seed)

    def __call__(self, example: Example) -> Sequence[int]:
        """Return the control's head of each word that has a head."""
        words, heads = example.words or (), read_heads(example)
        return [
            -1 if head < 0 else self._attach(index, self._offset(word), len(words))
            for index, (word, head) in enumerate(zip(words, heads, strict=True))
        ]

    def _offset(self, word: str) -> int:
        digest = hashlib.blake2b(f"{self.seed} {word.lower()}".encode(), digest_size=8).digest()
        return int(self.offsets[int.from_bytes(digest, "big") * len(self.offsets) >> 64])

    @staticmethod
    def _attach(index: int, offset: int, length: int) -> int:
        for head in (index + offset, index - offset):
            if 0 <= head < length:
                return head
        return length - 1 if 2 * index < length - 1 else 0  # the farther end, which is another word


@dataclass(frozen=True)
class TreeBatch:
    """What a probe of syntax should predict for the words along the axis of a map."""

    words: Int[Tensor, "batch word"]  # their numbers in the sentence, -1 for what is no word
    heads: Int[Tensor, "task batch word"]  # position of the head along the axis, -1 where nothing is to predict
    groups: Bool[Tensor, "batch word relation"]  # the relations of each word that has a head here

    @property
    def candidates(self) -> Bool[Tensor, "batch word word"]:
        """Which words may be the head of which: all others, but no special tokens."""
        is_word = self.words >= 0
        return is_word[:, :, None] & is_word[:, None] & ~torch.eye(is_word.shape[1], dtype=torch.bool)

    @property
    def offset_heads(self) -> Int[Tensor, "batch offset word"]:
        """The position at each of OFFSETS from a word, or the first or last word of the sentence."""
        order = torch.where(self.words >= 0, self.words, torch.iinfo(torch.int64).max).argsort(-1)  # words first
        count = (self.words >= 0).sum(-1)[:, None]
        rank = order.argsort(-1)
        ranks = [(rank + offset).clamp(min=0).minimum(count - 1) for offset in OFFSETS]
        return torch.stack([order.gather(1, target.clamp(min=0)) for target in ranks], 1)

    def count_hits(self, predicted: Int[Tensor, "batch *axes word"]) -> Int[np.ndarray, "task batch relation *axes"]:
        """Return how many words of each example and relation have this predicted head."""
        heads = self.heads.to(predicted.device)
        groups = self.groups.to(predicted.device).double()
        axes = predicted.ndim - 2
        expanded = heads.reshape(heads.shape[0], heads.shape[1], *(1,) * axes, heads.shape[2])
        hits = ((predicted == expanded) & (expanded >= 0)).double().flatten(2, -2)  # task batch axes word
        counts = torch.einsum("tbaw,bwr->tbra", hits, groups).round().long()
        return counts.reshape(*counts.shape[:3], *predicted.shape[1:-1]).cpu().numpy()


def align_trees(maps: Maps, relations: Sequence[str], tasks: Sequence[HeadsOf]) -> TreeBatch:
    """Return the heads of the words of some maps; a word whose head was truncated is not counted."""
    words = maps.keys.word.cpu()
    heads = torch.full((len(tasks), *words.shape), -1)
    groups = torch.zeros(*words.shape, len(relations), dtype=torch.bool)
    index = {relation: column for column, relation in enumerate(relations)}
    for row, (example, word_numbers) in enumerate(zip(maps.examples, words.tolist(), strict=True)):
        positions = {number: position for position, number in enumerate(word_numbers) if number >= 0}
        answers = [task(example) for task in tasks]
        for number, position in positions.items():
            targets = [answer[number] for answer in answers]
            if not all(target in positions for target in targets):
                continue
            heads[:, row, position] = torch.tensor([positions[target] for target in targets])
            names = (ALL, example.columns["relations"][number])
            groups[row, position, [index[name] for name in names if name in index]] = True
    return TreeBatch(words, heads, groups)
