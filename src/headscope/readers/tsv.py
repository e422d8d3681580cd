"""Tab-separated tables."""

from dataclasses import dataclass
from typing import ClassVar

from headscope.core.reader import Reader, RecordTable
from headscope.data.reading.files import UTF8, find_file, read_lines
from headscope.data.reading.tab_separated import read_tab_table


@dataclass(frozen=True)
class Tsv(Reader):
    """Tab-separated values without quoting, as in GLUE; for quoted ones use csv:delimiter=tab.

    The first line names the columns; with header=false the columns are called 1, 2, 3, …
    """

    header: bool = True
    encoding: str = UTF8

    endings: ClassVar[tuple[str, ...]] = ("tsv", "tab")

    def __call__(self, path: str) -> RecordTable:
        """Read the rows of a file."""
        file = find_file(path)
        if self.header:
            return read_tab_table(file, encoding=self.encoding)
        width = next((text.count("\t") + 1 for _, text, _ in read_lines(file, self.encoding) if text), 1)
        names = tuple(str(number) for number in range(1, width + 1))
        return read_tab_table(file, header=names, encoding=self.encoding)
