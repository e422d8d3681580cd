"""Plain text."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.reading.lines import read_lines
from headscope.data.reading.locate import find_file


@dataclass(frozen=True)
class Text(Reader):
    """Plain text: each line, each paragraph or the whole file is an example.

    White space around an example is removed, and empty lines are none. A paragraph ends at an empty line; its own
    lines are joined by spaces.
    """

    unit: Literal["line", "paragraph", "file"] = "line"

    endings: ClassVar[tuple[str, ...]] = ("txt", "text")

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, place: str) -> RecordTable:
        """The examples of a text file."""
        path = find_file(place)
        rows = {"line": _lines, "paragraph": _paragraphs, "file": _whole}[self.unit](path)
        return RecordTable(str(path), rows, Columns(text="text"), ("text",))


def _lines(path: Path) -> Iterator[Record | Malformed]:
    for number, text, problem in read_lines(path):
        if problem:
            yield Malformed(number, problem)
        elif text.strip():
            yield Record(number, {"text": text.strip()})


def _paragraphs(path: Path) -> Iterator[Record | Malformed]:
    start, held, wrong = 0, [], None
    for number, text, problem in read_lines(path):
        if text.strip():
            start = start or number
            held.append(text.strip())
            wrong = wrong or (problem and Malformed(number, problem))
        elif held:
            yield wrong or Record(start, {"text": " ".join(held)})
            start, held, wrong = 0, [], None
    if held:
        yield wrong or Record(start, {"text": " ".join(held)})


def _whole(path: Path) -> Iterator[Record | Malformed]:
    found = list(read_lines(path))
    wrong = next((Malformed(number, problem) for number, _, problem in found if problem), None)
    yield wrong or Record(1, {"text": "\n".join(text for _, text, _ in found).strip()})
