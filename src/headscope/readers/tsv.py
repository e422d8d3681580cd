"""Tab-separated tables."""

from dataclasses import dataclass
from typing import ClassVar

from headscope.core.reader import Reader, RecordTable
from headscope.data.reading.files import find_file, read_lines
from headscope.data.reading.tab_separated import read_tab_table


@dataclass(frozen=True)
class Tsv(Reader):
    """Tab-separated values without quoting, as in GLUE; for quoted ones use csv:delimiter=tab.

    The first line names the columns; with header=false the columns are called 1, 2, 3, …
    """

    header: bool = True

    endings: ClassVar[tuple[str, ...]] = ("tsv", "tab")

    def __call__(self, path: str) -> RecordTable:
        """Read the rows of a file."""
        file = find_file(path)
        if self.header:
            return read_tab_table(file)
        width = next((text.count("\t") + 1 for _, text, _ in read_lines(file) if text), 1)
        return read_tab_table(file, header=tuple(str(number) for number in range(1, width + 1)))
