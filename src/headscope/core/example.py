"""One item of data."""

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from headscope.core.errors import InputError
from headscope.core.lazy import LazyFields

PAD = "[pad]"
"""The name of a position that a model adds to fill a window of a picture up. It is attended to."""


@dataclass(frozen=True)
class Example(LazyFields):
    """A text or a pair of texts, with its words, label and further columns.

    For encoder-decoder models (T5, BART), `pair` is the decoder's input.

    >>> Example(id="0", text="The cat sat.").pair is None
    True
    """

    id: str
    text: str
    pair: str | None = None
    words: tuple[str, ...] | None = None
    label: int | float | None = None
    columns: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    part_of: str | None = None  # the id of the example that this is a part of, as a window is of a picture

    def place_patches(self, keys: int) -> np.ndarray[Any, np.dtype[Any]] | None:
        """Return the row and the column of each key in the picture, -1 outside of it; None without a picture.

        A capture says where keys lie that are not all patches in order, after [CLS] and the like; of other keys than
        it says, nothing is known.

        Parameters
        ----------
        keys
            The number of keys.
        """
        if "picture" not in self.columns:
            return None
        if "places" in self.columns:
            places = np.asarray(self.columns["places"])
            return places if places.shape == (2, keys) else None
        rows, columns = self.columns["patches"]
        before = keys - rows * columns
        if before not in (0, 1, 2, self.columns.get("before")):  # DeiT has two tokens before its patches
            return None
        patches = np.indices((rows, columns)).reshape(2, -1)
        return np.pad(patches, ((0, 0), (before, 0)), constant_values=-1)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the columns as a dict, because a read-only mapping cannot be pickled."""
        return type(self), (self.id, self.text, self.pair, self.words, self.label, dict(self.columns), self.part_of)


@dataclass(frozen=True)
class ExampleStream(Collection[Example]):
    """Examples that are read from their source whenever they are gone through, and are never all in memory.

    `hs.scan` makes one. A slice is a stream of its own.

    >>> stream = ExampleStream(lambda: (Example(str(number), "The cat sat.") for number in range(9)), range(9))
    >>> [example.id for example in stream[1::3]], len(stream)
    (['1', '4', '7'], 9)
    """

    read: Callable[[], Iterator[Example]] = field(repr=False)
    positions: Sequence[int]  # among the examples of the source, ascending

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[Example]:
        wanted = iter(self.positions)
        place = next(wanted, None)
        for position, example in enumerate(self.read()):
            if place is None:
                return
            if position == place:
                yield example
                place = next(wanted, None)

    def __contains__(self, item: object) -> bool:
        return any(item == example for example in self)

    def __getitem__(self, part: slice) -> "ExampleStream":
        if not isinstance(part, slice):
            raise InputError(
                f"A stream has no example [{part!r}] without reading those before. Give a slice, as stream[:5], and go "
                "through it, or read all at once: hs.read(stream)."
            )
        return replace(self, positions=self.positions[part])


Examples = Sequence[Example] | ExampleStream
"""Examples that can be gone through again and again: in memory, or read each time."""


def sample_examples(examples: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    """Return all examples, or a random sample of `limit` of them, in their original order."""
    positions = draw_positions(len(examples), limit, seed)
    return list(examples) if positions is None else [examples[position] for position in positions]


def sample_stream(stream: ExampleStream, limit: int | None, seed: int) -> ExampleStream:
    """Return the sample of `sample_examples` as a stream."""
    positions = draw_positions(len(stream), limit, seed)
    return stream if positions is None else replace(stream, positions=[stream.positions[place] for place in positions])


def draw_positions(count: int, limit: int | None, seed: int) -> list[int] | None:
    """Return the positions of a random sample of `limit` of `count` examples, ascending; None if it is all of them."""
    if limit is None or limit >= count:
        return None
    if limit < 1:
        raise InputError(f"limit={limit} leaves no examples. Give at least 1.")
    return sorted(random.Random(seed).sample(range(count), limit))


def tabulate_examples(examples: Sequence[Example]) -> dict[str, list[Any]]:
    """Return the fields of examples as lists, without those that no example has; a missing label is None.

    >>> tabulate_examples([Example("a", "The cat sat.", label=1), Example("b", "It slept.")])
    {'id': ['a', 'b'], 'text': ['The cat sat.', 'It slept.'], 'label': [1, None]}
    """
    table = {name: [getattr(example, name) for example in examples] for name in ("id", "text", "pair", "label")}
    table["label"] = [label.item() if hasattr(label, "item") else label for label in table["label"]]  # of numpy
    table["label_name"] = [example.columns.get("label_name") for example in examples]
    return {name: values for name, values in table.items() if any(value is not None for value in values)}


def example_coordinates(table: Mapping[str, Sequence[Any]]) -> dict[str, tuple[str, Any]]:
    """Return the result of `tabulate_examples` as coordinates along `example`, which itself holds the ids.

    A missing label is NaN, a missing text is empty. A character that no file can hold becomes U+FFFD.
    """
    coords = {}
    for name, values in table.items():
        if all(value is None or isinstance(value, int | float) for value in values):
            column = np.array([math.nan if value is None else value for value in values])
        else:
            texts = ("" if value is None else str(value).replace("\0", "\ufffd") for value in values)
            column = np.array([text.encode(errors="surrogatepass").decode(errors="replace") for text in texts], object)
        coords["example" if name == "id" else name] = ("example", column)
    return coords
