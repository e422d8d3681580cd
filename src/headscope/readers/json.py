"""JSON files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.core.reader import Malformed, Reader, Record, RecordTable
from headscope.data.reading.files import UTF8, find_file, read_lines
from headscope.data.reading.values import type_name


@dataclass(frozen=True)
class Json(Reader):
    """JSON: a list of objects, whose keys are the columns, or an object that holds one such list.

    Fields of objects in objects are named with dots, as in text=data.review.text.
    """

    encoding: str = UTF8

    endings: ClassVar[tuple[str, ...]] = ("json",)

    def __call__(self, path: str) -> RecordTable:
        """Read the objects of a file."""
        file = find_file(path)
        rows = enumerate(_find_list(file, _parse(file, self.encoding)))
        return RecordTable(str(file), (_make_row(number, item) for number, item in rows), unit="row")


def _parse(path: Path, encoding: str) -> Any:
    """Return the value of the whole file."""
    lines = []
    for number, text, problem in read_lines(path, encoding, keep_ends=True):
        if problem:
            raise InputError(f"{path}, line {number}: {problem}.")
        lines.append(text)
    try:
        return json.loads("".join(lines))
    except json.JSONDecodeError as error:
        hint = f" If every line is an object, write 'jsonl@{path}'." if error.msg == "Extra data" else ""
        raise InputError(f"{path}, line {error.lineno}: it is not JSON: {error.msg}.{hint}") from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path}: its JSON cannot be read: {error}.") from None


def _find_list(path: Path, value: Any) -> list[Any]:
    """Return the list of objects that a file is, or that its object holds."""
    if isinstance(value, list):
        return value
    fields = value if isinstance(value, dict) else {}
    lists = {key: field for key, field in fields.items() if isinstance(field, list) and _are_objects(field)}
    if len(lists) != 1:
        content = f"an object with the fields {join_words(fields, limit=8)}" if fields else type_name(value)
        raise InputError(
            f"{path} holds {content}, but a list of objects is expected, or an object with one such list. Save the "
            "rows as a list, or read them in Python and give hs.read the list."
        )
    return next(iter(lists.values()))


def _are_objects(items: list[Any]) -> bool:
    return bool(items) and all(isinstance(item, dict) for item in items)


def _make_row(number: int, item: Any) -> Record | Malformed:
    if not isinstance(item, dict):
        return Malformed(number, f"it is {type_name(item)}, but an object {{…}} is expected")
    return Record(number, item)
