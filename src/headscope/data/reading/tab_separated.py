"""Tab-separated tables without quoting."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError
from headscope.core.prose import count_noun, join_words
from headscope.core.reader import Columns, Malformed, Record, RecordTable, Unreadable
from headscope.data.reading.files import read_lines


def read_tab_table(
    path: Path,
    columns: Columns | None = None,
    *,
    header: Sequence[str] | None = None,
    convert: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
    required: Sequence[str | None] = (),
    encoding: str | None = None,
) -> RecordTable:
    """Return the rows of a file, one per line; `header` names the columns of a file without a header line.

    `convert` turns the texts of a row into its values, or raises Unreadable. `required` columns must exist.
    """
    lines = read_lines(path, encoding)
    names = tuple(header) if header is not None else _read_header(path, lines)
    if missing := [name for name in required if name and name not in names]:
        raise InputError(f"{path} has no column '{missing[0]}'. It has: {join_words(names)}. Is it the right file?")
    rows = (
        Malformed(number, problem) if problem else parse_row(number, text.split("\t"), names, convert)
        for number, text, problem in lines
        if problem or text
    )
    return RecordTable(str(path), rows, columns or Columns(), names)


def check_header(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns, and raise an error if one occurs twice."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(f"{path}, line 1: the header has the column '{name}' twice. Rename one of them.")
    return tuple(names)


def parse_row(
    number: int,
    fields: Sequence[str],
    names: Sequence[str],
    convert: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
) -> Record | Malformed:
    """Return a row by column, or Malformed if it has not one field for each column."""
    if len(fields) != len(names):
        columns = count_noun(len(names), "column")
        return Malformed(number, f"it has {count_noun(len(fields), 'field')}, but there are {columns}")
    try:
        return Record(number, convert(dict(zip(names, fields, strict=True))))
    except Unreadable as error:
        return Malformed(number, str(error))


def _read_header(path: Path, lines: Iterator[tuple[int, str, str | None]]) -> tuple[str, ...]:
    _, text, problem = next(lines, (1, "", None))
    if problem or not text.strip():
        raise InputError(f"{path}, line 1: {problem or 'it is empty'}. The first line must name the columns.")
    return check_header(path, text.split("\t"))
