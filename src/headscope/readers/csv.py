"""Comma-separated tables."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal

from headscope.core.errors import InputError
from headscope.core.reader import Malformed, Reader, RecordTable
from headscope.core.spec import check_choices
from headscope.data.reading.files import UTF8, find_file, read_lines
from headscope.data.reading.tab_separated import check_header, parse_row

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


@dataclass(frozen=True)
class Csv(Reader):
    """Comma-separated values with quoting; other delimiters by name.

    The first row names the columns; with header=false the columns are called 1, 2, 3, …
    """

    delimiter: Literal["comma", "semicolon", "tab", "pipe"] = "comma"
    header: bool = True
    encoding: str = UTF8

    endings: ClassVar[tuple[str, ...]] = ("csv",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:
        """Read the rows of a file."""
        file = find_file(path)
        rows = _parse(file, DELIMITERS[self.delimiter], self.encoding)
        first = next(rows, None)
        if first is None:
            raise InputError(f"{file} has only empty lines. Was it written completely?")
        line, fields = first
        if isinstance(fields, Malformed):
            purpose = "name the columns" if self.header else "show how many columns there are"
            raise InputError(f"{file}, line {line}: {fields.problem}. The first row must {purpose}.")
        if self.header:
            names = check_header(file, fields)
            _check_delimiter(file, names)
        else:
            names = tuple(str(number) for number in range(1, len(fields) + 1))
            rows = chain([first], rows)
        records = (row if isinstance(row, Malformed) else parse_row(line, row, names) for line, row in rows)
        return RecordTable(str(file), records, header=names)


def _check_delimiter(path: Path, names: Sequence[str]) -> None:
    for name, delimiter in DELIMITERS.items():
        if len(names) == 1 and delimiter in names[0]:
            raise InputError(
                f"{path} has one column, {names[0]!r}. Does it have another delimiter? "
                f"Write 'csv:delimiter={name}@{path}'."
            )


def _parse(path: Path, delimiter: str, encoding: str) -> Iterator[tuple[int, list[str] | Malformed]]:
    """Yield the first line of each row, and its fields or what is wrong."""
    problems: dict[int, str] = {}

    def texts() -> Iterator[str]:
        for number, text, problem in read_lines(path, encoding, keep_ends=True):
            if problem:
                problems[number] = problem
            yield text

    rows = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        start = rows.line_num + 1
        try:
            fields = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, Malformed(start, _describe(str(error), rows.line_num - start + 1))
            continue
        line = next(filter(problems.__contains__, range(start, rows.line_num + 1)), None)
        if line is not None:
            yield line, Malformed(line, problems.pop(line))
        elif fields:
            yield start, fields


def _describe(error: str, lines: int) -> str:
    if "unexpected end of data" in error:
        rest = "is one field" if lines == 1 else f"({lines} lines) is one field"
        return f"a quotation mark that opens here is never closed, so that the rest of the file {rest}"
    if "field larger" in error:
        return f"a {error.replace('field', 'field is', 1)}; raise it with csv.field_size_limit"
    return f"its quoting is broken: {error}"
