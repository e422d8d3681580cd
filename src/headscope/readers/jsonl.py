"""JSON Lines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from headscope.core.reader import Malformed, Reader, Record, RecordTable
from headscope.data.reading.lines import read_lines
from headscope.data.reading.locate import find_file
from headscope.data.reading.values import type_name


@dataclass(frozen=True)
class Jsonl(Reader):
    """JSON Lines: one object a line, its keys are the columns."""

    endings: ClassVar[tuple[str, ...]] = ("jsonl", "ndjson")

    def __call__(self, place: str) -> RecordTable:
        """The objects of a file."""
        path = find_file(place)
        return RecordTable(str(path), _rows(path))


def _rows(path: Path) -> Iterator[Record | Malformed]:
    for number, text, problem in read_lines(path):
        if problem:
            yield Malformed(number, problem)
        elif text.strip():
            yield _row(number, text)


def _row(number: int, text: str) -> Record | Malformed:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        return Malformed(number, f"it is not JSON: {error.msg} (character {error.pos + 1})")
    except (RecursionError, ValueError) as error:
        return Malformed(number, f"its JSON cannot be read: {error}")
    if not isinstance(found, dict):
        return Malformed(number, f"it is {type_name(found)}, where an object {{…}} is expected")
    return Record(number, found)
