"""Tables whose fields are separated by tabs, without quotation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError
from headscope.core.reader import Columns, Malformed, Record, RecordTable, Unreadable
from headscope.data.reading.lines import read_lines


def read_tab_table(
    path: Path,
    columns: Columns | None = None,
    *,
    header: Sequence[str] | None = None,
    typed: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
) -> RecordTable:
    """The rows of a file, one a line; `header` names the columns where the first line does not.

    `typed` makes the values of a row from its texts, or raises Unreadable.
    """
    found = read_lines(path)
    names = tuple(header) if header is not None else _header(path, found)
    return RecordTable(str(path), _rows(found, names, typed), columns or Columns(), names)


def expect_columns(path: Path, table: RecordTable, names: Sequence[str]) -> None:
    """Refuse a table that has not all of these columns."""
    if missing := [name for name in names if name not in (table.header or ())]:
        raise InputError(
            f"{path} has no column '{missing[0]}'. Its columns are: {', '.join(table.header or ())}. "
            "Is it the right file?"
        )


def check_header(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns, each there once."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"{path}, line 1: the header names the column '{name}' twice. Give every column its name.")
    return tuple(names)


def match_columns(fields: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """The values of a row by column, if it has as many as there are columns."""
    if len(fields) != len(names):
        raise Unreadable(f"it has {_many(len(fields), 'field')}, but there are {_many(len(names), 'column')}")
    return dict(zip(names, fields, strict=True))


def _header(path: Path, found: Iterator[tuple[int, str, str | None]]) -> tuple[str, ...]:
    number, text, problem = next(found, (1, "", None))
    if problem:
        raise InputError(f"{path}, line {number}: {problem}. It should name the columns; save the file as UTF-8.")
    if not text.strip():
        raise InputError(f"{path}, line 1: there is no header. The first line names the columns.")
    return check_header(path, text.split("\t"))


def _rows(
    found: Iterator[tuple[int, str, str | None]],
    names: Sequence[str],
    typed: Callable[[dict[str, Any]], Mapping[str, Any]],
) -> Iterator[Record | Malformed]:
    for number, text, problem in found:
        if problem:
            yield Malformed(number, problem)
        elif text:
            try:
                yield Record(number, typed(match_columns(text.split("\t"), names)))
            except Unreadable as wrong:
                yield Malformed(number, str(wrong))


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
