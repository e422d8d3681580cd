"""GAP: paragraphs with a pronoun and two names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.core.errors import InputError
from headscope.core.reader import Columns, Reader, Record, RecordTable, Unreadable
from headscope.data.bundled.gap import gap_file, read_gap_rows
from headscope.data.reading.files import find_first_file
from headscope.data.reading.tab_separated import read_tab_table

MENTIONS = ("Pronoun", "A", "B")
BOOLEANS = {"TRUE": True, "FALSE": False}
COLUMNS = Columns(text="Text", id="ID")
BUNDLED = ("development", "validation")


@dataclass(frozen=True)
class Gap(Reader):
    """GAP's development, validation or test set: to which name does the pronoun refer (Webster et al., 2018)?

    The columns keep GAP's names; offsets count characters, and `A-coref` and `B-coref` are booleans. Without a path,
    development and validation are those that come with the package, licensed under Apache-2.0 (see GAP_LICENSE).
    """

    split: str = "development"

    bundled: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("webster2018",)

    def __call__(self, path: str) -> RecordTable:
        """Read `gap-SPLIT.tsv` in a folder, a file, or a split of the package."""
        if not path:
            return self._read_bundled()
        file = find_first_file(path, f"gap-{self.split}.tsv", f"{self.split}.tsv")
        required = ("ID", "Text", *MENTIONS, *(f"{name}-offset" for name in MENTIONS))
        return read_tab_table(file, COLUMNS, convert=_convert, required=required)

    def _read_bundled(self) -> RecordTable:
        if self.split not in BUNDLED:
            raise InputError(
                f"The package holds the splits development and validation of GAP, but got '{self.split}'. For other "
                f"files say where they are: gap:{self.split}@PATH."
            )
        rows = [Record(number, _convert(dict(row))) for number, row in read_gap_rows(self.split)]
        return RecordTable(gap_file(self.split), rows, COLUMNS)


def _convert(row: dict[str, Any]) -> Mapping[str, Any]:
    for name in MENTIONS:
        offset = row[f"{name}-offset"]
        if not (offset.isascii() and offset.isdigit()):
            raise Unreadable(f"the column '{name}-offset' is {offset!r}, but an integer is expected")
        row[f"{name}-offset"] = start = int(offset)
        if not row["Text"].startswith(row[name], start):
            text = row["Text"][start : start + len(row[name])]
            raise Unreadable(f"the text has {text!r} at offset {start}, not {row[name]!r} (column '{name}')")
    for name in ("A-coref", "B-coref"):
        if name in row:
            if row[name] not in BOOLEANS:
                raise Unreadable(f"the column '{name}' is {row[name]!r}, but TRUE or FALSE is expected")
            row[name] = BOOLEANS[row[name]]
    return row
