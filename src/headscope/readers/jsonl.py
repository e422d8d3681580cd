"""JSON Lines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from headscope.core.reader import Malformed, Reader, Row, Table
from headscope.data.reading.lines import lines
from headscope.data.reading.locate import file_at
from headscope.data.reading.values import kind_of


@dataclass(frozen=True)
class Jsonl(Reader):
    """JSON Lines: one object a line, its keys are the columns."""

    endings: ClassVar[tuple[str, ...]] = ("jsonl", "ndjson")

    def __call__(self, place: str) -> Table:
        """The objects of a file."""
        path = file_at(place)
        return Table(str(path), _rows(path))


def _rows(path: Path) -> Iterator[Row | Malformed]:
    for number, text, problem in lines(path):
        if problem:
            yield Malformed(number, problem)
        elif text.strip():
            yield _row(number, text)


def _row(number: int, text: str) -> Row | Malformed:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        return Malformed(number, f"it is not JSON: {error.msg} (character {error.pos + 1})")
    except (RecursionError, ValueError) as error:
        return Malformed(number, f"its JSON cannot be read: {error}")
    if not isinstance(found, dict):
        return Malformed(number, f"it is {kind_of(found)}, where an object {{…}} is expected")
    return Row(number, found)
