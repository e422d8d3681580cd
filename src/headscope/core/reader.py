"""The interface of readers, and the rows that they return."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal


class Unreadable(Exception):  # noqa: N818  (not an error yet: the row may be skipped)
    """One row cannot be read; the message is a sentence without its full stop."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row: its line or row number, and its values by column."""

    number: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """One row that cannot be read: its line or row number, and the problem as a sentence without its full stop."""

    number: int
    problem: str


@dataclass(frozen=True)
class Columns:
    """The name of the column for each field of an example; None where it is not known.

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
    """The ordered class names of a label column, where they are known."""

    @cached_property
    def used(self) -> tuple[str, ...]:
        """All columns that have a name here."""
        choices = (self.choices,) if isinstance(self.choices, str) else self.choices or ()
        return tuple(name for name in (self.text, self.pair, self.label, self.words, self.id, *choices) if name)


@dataclass(frozen=True)
class RecordTable:
    """The rows that a reader returns, and what the format says about their columns.

    `header` lists the columns where all rows have the same ones. `unit` says what `Record.number` counts: lines of a
    file from 1, or rows from 0.
    """

    name: str
    rows: Iterable[Record | Malformed]
    columns: Columns = field(default_factory=Columns)
    header: tuple[str, ...] | None = None
    unit: Literal["line", "row"] = "line"


class Reader(ABC):
    """A data format: frozen parameters, and a call that reads a path into a RecordTable.

    A subclass is a frozen dataclass in its own file under `readers/`. It yields Malformed for a row that cannot be
    read, so that the caller can stop or skip it.
    """

    endings: ClassVar[tuple[str, ...]] = ()
    """File endings of this format, such as "csv"; a path without a format is read by its ending."""

    needs_path: ClassVar[bool] = True
    """Whether the data are at a path, `name:parameters@PATH`; if not, the parameters identify them."""

    bundled: ClassVar[bool] = False
    """Whether data of this format come with the package, so that the path may be left out; it is then empty."""

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers to cite for the format or its data, as keys of the bundled bibliography."""

    @abstractmethod
    def __call__(self, path: str) -> RecordTable:
        """Read the rows of a file, or of a folder for formats that know the names of their files."""
