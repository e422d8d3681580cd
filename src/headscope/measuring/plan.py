"""Which examples are measured, in which order and in which batches.

The plan alone decides the order of all sums: it does not look at the clock or at free memory, so that a run that was
stopped and resumed, or that many workers shared, gives the same numbers.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.results.stamp import fingerprint

TOKENS = {"cpu": 4096, "cuda": 16384}
"""Tokens in a batch, padding included, by device; more does not make a CPU quicker, and a GPU is well fed."""


@dataclass(frozen=True)
class BatchPlan:
    """The examples of this run, and the batches that they are measured in, longest first."""

    examples: tuple[Example, ...]
    batches: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]  # tokens of each example
    data: str  # the fingerprint of all that is measured, by this run and by the other shards
    shard: tuple[int, int] = (1, 1)

    def batch(self, place: int) -> tuple[Example, ...]:
        """The examples of one batch."""
        return tuple(self.examples[each] for each in self.batches[place])

    @property
    def padded(self) -> list[int]:
        """How many tokens each batch has, padding included."""
        return [len(batch) * max(self.lengths[each] for each in batch) for batch in self.batches]


def sample_examples(examples: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    """All examples, or `limit` of them at random, in their order."""
    _check_ids(examples)
    if limit is None or limit >= len(examples):
        return list(examples)
    if limit < 1:
        raise InputError(f"limit={limit} leaves nothing to measure. Give at least 1.")
    return [examples[place] for place in sorted(random.Random(seed).sample(range(len(examples)), limit))]


def shard_of(given: str | tuple[int, int] | None) -> tuple[int, int]:
    """Which part of how many: "3/16" or (3, 16), counted from 1.

    >>> shard_of("3/16")
    (3, 16)
    """
    if given is None:
        return 1, 1
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", given) if isinstance(given, str) else None
    part, parts = (int(found[1]), int(found[2])) if found else given if isinstance(given, tuple) else (0, 0)
    if not 1 <= part <= parts:
        raise InputError(f"shard={given!r} is not a part of a whole. Write it as 3/16: the third of sixteen.")
    return part, parts


def plan_of(
    examples: Sequence[Example],
    lengths: Sequence[int],
    *,
    shard: tuple[int, int] = (1, 1),
    data: str,
    size: int | None = None,
    cells: int | None = None,
    device: str = "cpu",
) -> BatchPlan:
    """Batches of like length, the longest first, so that a batch too large for memory fails at once.

    `size` is the most examples in a batch; by default as many as hold TOKENS tokens on the device, and no more than
    `cells` cells of a map together.
    """
    if size is not None and size < 1:
        raise InputError(f"batch_size must be at least 1, but got {size}.")
    order = sorted(range(len(examples)), key=lambda place: (-lengths[place], place))
    batches: list[tuple[int, ...]] = []
    while order:
        longest = lengths[order[0]]
        room = TOKENS.get(device, TOKENS["cpu"]) // longest
        room = room if cells is None else min(room, cells // longest**2)
        many = size or max(1, room)
        batches.append(tuple(order[:many]))
        order = order[many:]
    return BatchPlan(tuple(examples), tuple(batches), tuple(lengths), data, shard)


def fingerprint_of(examples: Sequence[Example]) -> str:
    """A short name for exactly these examples: ids, texts, words, and the tags that they came with."""
    return fingerprint(part for each in examples for part in _parts(each))


def _parts(example: Example) -> Iterator[str]:
    yield from (example.id, example.text, example.pair or "", "\x01".join(example.words or ()))
    yield from example.columns.get("tags", ())


def _check_ids(examples: Sequence[Example]) -> None:
    seen: set[str] = set()
    for each in examples:
        if each.id in seen:
            raise InputError(f"Two examples have the id '{each.id}'. Give every example an id of its own.")
        seen.add(each.id)
