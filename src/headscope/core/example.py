"""One item of data."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headscope.core.errors import InputError
from headscope.core.lazy import LazyFields


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the columns as a dict, because a read-only mapping cannot be pickled."""
        return type(self), (self.id, self.text, self.pair, self.words, self.label, dict(self.columns))


def sample_examples(examples: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    """Return all examples, or a random sample of `limit` of them, in their original order."""
    if limit is None or limit >= len(examples):
        return list(examples)
    if limit < 1:
        raise InputError(f"limit={limit} leaves no examples. Give at least 1.")
    return [examples[index] for index in sorted(random.Random(seed).sample(range(len(examples)), limit))]
