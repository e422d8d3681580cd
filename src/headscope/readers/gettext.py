"""Message catalogs of programs."""

from dataclasses import dataclass
from typing import ClassVar

from headscope.core.reader import Columns, Reader, RecordTable
from headscope.data.reading.catalogues import read_mo, read_po
from headscope.data.reading.files import find_file


@dataclass(frozen=True)
class Gettext(Reader):
    """A catalog of gettext, .po or .mo: messages of a program as texts, their translations as pairs.

    Messages that are not translated, fuzzy or obsolete are left out, as programs do; of a message with plural forms,
    the first form is read. The column `context` has what tells equal messages apart.
    """

    endings: ClassVar[tuple[str, ...]] = ("po", "mo")

    def __call__(self, path: str) -> RecordTable:
        """Read the messages of a file."""
        file = find_file(path)
        compiled = file.suffix.lower() == ".mo"
        rows, columns = (read_mo if compiled else read_po)(file), Columns(text="source", pair="target")
        return RecordTable(str(file), rows, columns, ("source", "target", "context"), "row" if compiled else "line")
