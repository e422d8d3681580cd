"""Plain text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.reading.files import UTF8, find_file, read_lines

Line = tuple[int, str, str | None]


@dataclass(frozen=True)
class Text(Reader):
    """Plain text: each line, each paragraph or the whole file is an example.

    White space around an example is stripped, and empty lines are skipped. An empty line ends a paragraph; the lines
    of a paragraph are joined by spaces.
    """

    unit: Literal["line", "paragraph", "file"] = "line"
    encoding: str = UTF8

    endings: ClassVar[tuple[str, ...]] = ("txt", "text")

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:
        """Read the examples of a text file."""
        file = find_file(path)
        rows = (_join(lines, self.unit == "file") for lines in self._split(read_lines(file, self.encoding)))
        return RecordTable(str(file), rows, Columns(text="text"), ("text",))

    def _split(self, lines: Iterable[Line]) -> Iterator[list[Line]]:
        """Yield the lines of each example."""
        if self.unit == "file":
            yield list(lines)
            return
        for filled, group in groupby(lines, key=lambda line: bool(line[1].strip())):
            if filled:
                paragraph = list(group)
                yield from ([line] for line in paragraph) if self.unit == "line" else [paragraph]


def _join(lines: list[Line], paragraph: bool) -> Record | Malformed:
    for number, _, problem in lines:
        if problem:
            return Malformed(number, problem)
    if paragraph:
        return Record(1, {"text": "\n".join(text for _, text, _ in lines).strip()})
    return Record(lines[0][0], {"text": " ".join(text.strip() for _, text, _ in lines)})
