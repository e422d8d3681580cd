"""A format that examples are read from."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal


class Unreadable(Exception):  # noqa: N818  (not an error yet: the row may be skipped)
    """What is wrong with one row, as a sentence without its stop."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row that could be read: where it stands, and its values by column."""

    line: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """One row that could not be read: where it stands, and what is wrong with it, as a sentence without its stop."""

    line: int
    problem: str


@dataclass(frozen=True)
class Columns:
    """Which column is what; None where nobody said.

    >>> Columns(text="review", label="stars").used
    ('review', 'stars')
    """

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    words: str | None = None
    id: str | None = None
    choices: str | tuple[str, ...] | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """The names of a column's labels in their order, where it is known."""

    @cached_property
    def used(self) -> tuple[str, ...]:
        """Every column that is something."""
        choices = (self.choices,) if isinstance(self.choices, str) else self.choices or ()
        return tuple(name for name in (self.text, self.pair, self.label, self.words, self.id, *choices) if name)


@dataclass(frozen=True)
class RecordTable:
    """What a reader found: rows, and what the format says about their columns.

    `header` lists the columns where all rows have the same; `counts` is what the numbers of its rows count: lines of
    a file from 1, or rows from 0.
    """

    name: str
    rows: Iterable[Record | Malformed]
    columns: Columns = field(default_factory=Columns)
    header: tuple[str, ...] | None = None
    counts: Literal["line", "row"] = "line"


class Reader(ABC):
    """Frozen parameters and a call that turns a place into a Table.

    A subclass is a frozen dataclass in a file of its own under `readers/`, named after it. A row that cannot be read
    is given as Malformed, so that whoever reads can stop or go on.
    """

    endings: ClassVar[tuple[str, ...]] = ()
    """The endings of files in this format, such as "csv", by which a path finds its reader."""

    needs_place: ClassVar[bool] = True
    """Whether the data lie at a path, `name:parameters@PATH`; if not, the parameters say where they are."""

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers that the format or its data come from, as keys of `headscope cite`."""

    @abstractmethod
    def __call__(self, place: str) -> RecordTable:
        """The rows at a place: a file, or a folder for formats that know their files' names."""
