"""JSON Lines."""

import json
from dataclasses import dataclass
from typing import ClassVar

from headscope.core.reader import Malformed, Reader, Record, RecordTable
from headscope.data.reading.files import UTF8, find_file, read_lines
from headscope.data.reading.values import type_name


@dataclass(frozen=True)
class Jsonl(Reader):
    """JSON Lines: one object per line, whose keys are the columns."""

    encoding: str = UTF8

    endings: ClassVar[tuple[str, ...]] = ("jsonl", "ndjson")

    def __call__(self, path: str) -> RecordTable:
        """Read the objects of a file."""
        file = find_file(path)
        rows = (
            Malformed(number, problem) if problem else _parse(number, text)
            for number, text, problem in read_lines(file, self.encoding)
            if problem or text.strip()
        )
        return RecordTable(str(file), rows)


def _parse(number: int, text: str) -> Record | Malformed:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        return Malformed(number, f"it is not JSON: {error.msg} (character {error.pos + 1})")
    except (RecursionError, ValueError) as error:
        return Malformed(number, f"its JSON cannot be read: {error}")
    if not isinstance(values, dict):
        return Malformed(number, f"it is {type_name(values)}, but an object {{…}} is expected")
    return Record(number, values)
