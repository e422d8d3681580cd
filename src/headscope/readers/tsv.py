"""Tab-separated tables."""

from dataclasses import dataclass
from typing import ClassVar

from headscope.core.reader import Reader, RecordTable
from headscope.data.reading.lines import read_lines
from headscope.data.reading.locate import find_file
from headscope.data.reading.tab_separated import read_tab_table


@dataclass(frozen=True)
class Tsv(Reader):
    """Tab-separated values without quotation, as GLUE has them; quoted ones are csv:delimiter=tab.

    The first line names the columns; with header=false they are called 1, 2, 3, …
    """

    header: bool = True

    endings: ClassVar[tuple[str, ...]] = ("tsv", "tab")

    def __call__(self, place: str) -> RecordTable:
        """The rows of a file."""
        path = find_file(place)
        if self.header:
            return read_tab_table(path)
        width = next((text.count("\t") + 1 for _, text, _ in read_lines(path) if text), 1)
        return read_tab_table(path, header=tuple(str(place + 1) for place in range(width)))
