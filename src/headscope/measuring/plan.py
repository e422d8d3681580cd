"""Which batches are measured, in which order.

The plan alone decides the order of all sums. It depends neither on time nor on free memory, so that a run that was
resumed or shared among workers gives the same numbers.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from headscope.core.errors import InputError
from headscope.core.example import Example, Examples
from headscope.data.tokenizing.encode import tokenize, warn_truncated
from headscope.data.tokenizing.shorten import COUNTED, shorten_examples
from headscope.engine.batch import check_max_length
from headscope.engine.images import count_patches, reads_images
from headscope.engine.memory import count_map_bytes, device_memory
from headscope.engine.model import Model
from headscope.engine.sound import count_sound_positions, reads_sounds
from headscope.measuring.options import WINDOW
from headscope.results import hashes

TOKENS = {"cpu": 4096, "cuda": 16384}
"""Tokens of a batch by device, padding included. Larger batches are not faster."""

CHUNK = 512  # examples tokenized at once to count their tokens


@dataclass(frozen=True)
class PlannedBatch:
    """Some examples of a run, longest first, and their positions in it."""

    positions: tuple[int, ...]
    examples: tuple[Example, ...]
    length: int  # tokens of the longest
    work: float = 1.0  # the part of its window's tokens, in examples of a window

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def padded_size(self) -> int:
        """Number of tokens, padding included."""
        return len(self) * self.length

    def skip(self, count: int) -> "PlannedBatch":
        """Return the batch without its first examples."""
        rest = self.work * (len(self) - count) / len(self)
        return replace(self, positions=self.positions[count:], examples=self.examples[count:], work=rest)


@dataclass(frozen=True)
class BatchPlan:
    """The examples of a run in windows, in the order of the data; each window is split into batches.

    Examples in memory and examples that are read as they are needed give the same batches.
    """

    examples: Examples
    split: Callable[[Sequence[Example], int], list[PlannedBatch]]  # of a window and the position of its first example
    window: int = WINDOW

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InputError(f"window must be at least 1, but got {self.window}.")

    def batches(self, start: int = 0) -> Iterator[PlannedBatch]:
        """Yield the batches in order, without the first `start` examples."""
        examples, done = iter(self.examples), 0
        while window := list(islice(examples, self.window)):
            if done + len(window) <= start:
                done += len(window)
                continue
            for batch in self.split(window, done) if done else self.first:
                done += len(batch)
                if done > start:
                    yield batch.skip(max(0, len(batch) - (done - start)))

    @cached_property
    def first(self) -> list[PlannedBatch]:
        """The batches of the first window."""
        return self.split(list(islice(self.examples, self.window)), 0)

    @property
    def fingerprint(self) -> str:
        """A hash of the batches of the first window and their order."""
        return hashes.fingerprint(" ".join(map(str, batch.positions)) for batch in self.first)


def plan_batches(
    examples: Sequence[Example],
    lengths: Sequence[int],
    *,
    first: int = 0,
    batch_size: int | None = None,
    cells: int | None = None,
    device: str = "cpu",
) -> list[PlannedBatch]:
    """Group examples of similar length, longest first, so that a batch too large for memory fails at once.

    The default batch size holds at most `TOKENS` tokens on the device, and at most `cells` cells of a map. `first` is
    the position of the first example in the run.
    """
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but got {batch_size}.")
    order = sorted(range(len(examples)), key=lambda index: (-lengths[index], index))
    batches: list[PlannedBatch] = []
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        fitting = TOKENS.get(device, TOKENS["cpu"]) // longest
        fitting = fitting if cells is None else min(fitting, cells // longest**2)
        chosen = order[start : start + (batch_size or max(1, fitting))]
        positions, texts = tuple(first + index for index in chosen), tuple(examples[index] for index in chosen)
        batches.append(PlannedBatch(positions, texts, longest))
        start += len(chosen)
    tokens = sum(batch.padded_size for batch in batches)
    return [replace(batch, work=batch.padded_size / tokens * len(examples)) for batch in batches]


def max_cells(model: Model, copies: int, *, layers: int | None = None) -> int:
    """Return how many cells of one map a batch may have, so that all maps take at most an eighth of the memory.

    `copies` of every map are in memory, of this number of layers, by default of all.
    """
    return device_memory(model) // 8 // count_map_bytes(model, 1, layers=layers, copies=copies)


def parse_shard(shard: str | tuple[int, int] | None) -> tuple[int, int]:
    """Return the part, counted from 1, and the number of parts.

    >>> parse_shard("3/16")
    (3, 16)
    """
    if shard is None:
        return 1, 1
    match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", shard) if isinstance(shard, str) else None
    number, count = (int(match[1]), int(match[2])) if match else shard if isinstance(shard, tuple) else (0, 0)
    if not 1 <= number <= count:
        raise InputError(f"shard={shard!r} is not a part of a whole. Write it as 3/16: the third of sixteen.")
    return number, count


def count_tokens(model: Model, examples: Sequence[Example], max_length: int | None) -> list[int]:
    """Return the number of tokens of each example as the model reads it; warn about texts that will be truncated."""
    if reads_images(model):
        return [count_patches(model, examples[0])] * len(examples)
    if reads_sounds(model):
        return count_sound_positions(model, examples)
    if model.tokenizer is None:
        raise InputError("This model has no tokenizer, so no text can be measured. Give one: hs.load(…, tokenizer=…).")
    longest = check_max_length(model, examples, max_length)
    paired = not model.network.config.is_encoder_decoder
    lengths = []
    short = shorten_examples(model.tokenizer, examples, longest, use_pair=paired, longer_than=COUNTED)
    for start in range(0, len(examples), CHUNK):
        chunk = short[start : start + CHUNK]
        texts = [list(example.words) if example.words is not None else example.text for example in chunk]
        rows = tokenize(model.tokenizer, texts, [example.pair if paired else None for example in chunk])
        lengths += [len(row["input_ids"]) for row in rows]
    warn_truncated(examples, lengths, longest, "will be truncated", shortened=short, stacklevel=4)
    return [min(length, longest) if longest else length for length in lengths]
