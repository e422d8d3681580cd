"""Read examples as a stream: all rows are checked and counted, and read again when they are needed."""

import os
from array import array
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from headscope.core.errors import InputError
from headscope.core.example import Example, ExampleStream
from headscope.core.options import takes_options
from headscope.core.reader import Columns, RecordTable
from headscope.data.reading.examples import Draft, Parsing, RowParser
from headscope.data.reading.in_memory import is_kept_elsewhere
from headscope.data.reading.options import ReadOptions
from headscope.data.reading.read import open_table, parse_options, read

Advance = Callable[[int], object]


@takes_options(ReadOptions)
def scan(options: ReadOptions) -> ExampleStream:
    """Return what `hs.read` returns as a stream, so that the examples of a file are never all in memory.

    All rows are read once now, to check and count them, and again whenever the stream is gone through. Lists, tables
    in memory and iterators, which can be gone through once only, stay in memory.

    >>> rows = [{"review": "Good.", "stars": 5}, {"review": "Bad.", "stars": 1}]
    >>> stream = hs.scan(rows, text="review", label="stars")
    >>> len(stream), [example.text for example in stream[1:]]
    (2, ['Bad.'])
    """
    return open_stream(options)


def open_stream(options: ReadOptions, advance: Advance = lambda _: None) -> ExampleStream:
    """Return the stream of a source; `advance` is told how many rows were counted."""
    how, source = parse_options(options), options.source
    if isinstance(source, ExampleStream) and how == Parsing(Columns()):
        return source
    if not can_scan(source):
        examples = read(**vars(options))
        return ExampleStream(lambda: iter(examples), range(len(examples)))
    find = partial(open_table, source, options.encoding)
    rows = _count(find, how, frozenset(), advance)
    if twice := rows.find_repeated():
        rows = _count(find, how, twice, advance)  # says which rows these are, or skips them

    def read_again() -> Iterator[Example]:
        parser, seen = RowParser(find(), how, _Ids(twice)), _Fingerprint()
        for draft in parser:
            seen.add(draft)
            if seen.count <= rows.seen.count:
                yield rows.parser.finish(draft)
        if seen != rows.seen:
            raise InputError(f"{parser.table.name} has changed since its rows were counted. Start again.")

    return ExampleStream(read_again, range(rows.seen.count))


def can_scan(source: Any) -> bool:
    """Return whether a source is a file, a dataset, or an object that gives its items whenever it is gone through."""
    if isinstance(source, str | os.PathLike):
        return source != "sample"
    return not isinstance(source, ExampleStream) and is_kept_elsewhere(source)


@dataclass
class _Fingerprint:
    """The number of examples, and a checksum of their ids and texts."""

    count: int = 0
    checksum: int = 0

    def add(self, draft: Draft) -> None:
        self.count += 1
        for name in ("id", "text", "pair"):
            self.checksum = crc32((draft[name] or "").encode(errors="surrogatepass"), self.checksum)


@dataclass(frozen=True)
class _Rows:
    """What is kept of all rows: a parser that has seen all labels, and a number for each id."""

    parser: RowParser
    seen: _Fingerprint
    ids: "array[int]"

    def find_repeated(self) -> frozenset[int]:
        """Return the numbers of ids that occur twice; seldom that of two different ids."""
        numbers = np.sort(np.frombuffer(self.ids, np.int64))
        return frozenset(numbers[1:][numbers[1:] == numbers[:-1]].tolist())


class _Ids(dict[str, int]):
    """Remembers the rows of those ids alone whose numbers are given."""

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__()
        self.numbers = numbers

    def __setitem__(self, name: str, row: int) -> None:
        if hash(name) in self.numbers:
            super().__setitem__(name, row)


def _count(find: Callable[[], RecordTable], how: Parsing, twice: Collection[int], advance: Advance) -> _Rows:
    """Parse all rows, and keep eight bytes of each."""
    rows = _Rows(RowParser(find(), how, _Ids(twice)), _Fingerprint(), array("q"))
    for draft in rows.parser:
        rows.seen.add(draft)
        rows.ids.append(hash(draft["id"]))
        advance(1)
    rows.parser.report(rows.seen.count, stacklevel=6)
    return rows
