"""One item of data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headscope.core.lazy import LazyFields


@dataclass(frozen=True)
class Example(LazyFields):
    """A text or a pair of texts, with what is known about it.

    For a model that reads and writes (T5, BART), `pair` is what the decoder reads.

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
        """So that other processes can be sent examples: columns that cannot be written to cannot be sent."""
        return type(self), (self.id, self.text, self.pair, self.words, self.label, dict(self.columns))
