"""Comma-separated tables."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal

from headscope.core.errors import InputError
from headscope.core.reader import Malformed, Reader, Record, RecordTable, Unreadable
from headscope.core.spec import check_choices
from headscope.data.reading.lines import read_lines
from headscope.data.reading.locate import find_file
from headscope.data.reading.tab_separated import check_header, match_columns

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


@dataclass(frozen=True)
class Csv(Reader):
    """Comma-separated values, quoted where needed; other delimiters by name.

    The first row names the columns; with header=false they are called 1, 2, 3, …
    """

    delimiter: Literal["comma", "semicolon", "tab", "pipe"] = "comma"
    header: bool = True

    endings: ClassVar[tuple[str, ...]] = ("csv",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, place: str) -> RecordTable:
        """The rows of a file."""
        path = find_file(place)
        found = _parsed(path, DELIMITERS[self.delimiter])
        first = next(found, None)
        if first is None:
            raise InputError(f"{path} holds nothing but empty lines. Was it written to its end?")
        line, fields = first
        if isinstance(fields, Malformed):
            if self.header:
                raise InputError(f"{path}, line {line}: {fields.problem}. It should name the columns.")
            raise InputError(f"{path}, line {line}: {fields.problem}. It should show how many columns there are.")
        if self.header:
            names = check_header(path, fields)
            _check_delimiter(path, names)
        else:
            names = tuple(str(place + 1) for place in range(len(fields)))
            found = chain([first], found)
        return RecordTable(str(path), (_row(line, each, names) for line, each in found), header=names)


def _check_delimiter(path: Path, names: Sequence[str]) -> None:
    for name, sign in DELIMITERS.items():
        if len(names) == 1 and sign in names[0]:
            raise InputError(
                f"{path} has one column, {names[0]!r}. Are its fields separated by another sign? "
                f"Write 'csv:delimiter={name}@{path}'."
            )


def _parsed(path: Path, delimiter: str) -> Iterator[tuple[int, list[str] | Malformed]]:
    """The line where each row starts, and its fields or what is wrong."""
    broken: dict[int, str] = {}

    def texts() -> Iterator[str]:
        for number, text, problem in read_lines(path, ends=True):
            if problem:
                broken[number] = problem
            yield text

    rows = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        start = rows.line_num + 1
        try:
            fields = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, Malformed(start, _problem(str(error), rows.line_num - start + 1))
            continue
        if wrong := next((line for line in range(start, rows.line_num + 1) if line in broken), 0) if broken else 0:
            yield wrong, Malformed(wrong, broken.pop(wrong))
        elif fields:
            yield start, fields


def _row(line: int, fields: list[str] | Malformed, names: Sequence[str]) -> Record | Malformed:
    if isinstance(fields, Malformed):
        return fields
    try:
        return Record(line, match_columns(fields, names))
    except Unreadable as wrong:
        return Malformed(line, str(wrong))


def _problem(error: str, many: int) -> str:
    if "unexpected end of data" in error:
        rest = "is one field" if many == 1 else f"({many} lines) is one field"
        return f"a quotation mark that opens here is never closed, so that the rest of the file {rest}"
    if "field larger" in error:
        return f"a {error.replace('field', 'field is', 1)}; raise it with csv.field_size_limit"
    return f"its quotation is broken: {error}"
