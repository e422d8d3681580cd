"""GAP: paragraphs with a pronoun and two names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.core.reader import Columns, Reader, RecordTable, Unreadable
from headscope.data.reading.files import find_first_file
from headscope.data.reading.tab_separated import read_tab_table

MENTIONS = ("Pronoun", "A", "B")
BOOLEANS = {"TRUE": True, "FALSE": False}


@dataclass(frozen=True)
class Gap(Reader):
    """GAP's development, validation or test set: to which name does the pronoun refer (Webster et al., 2018)?

    The columns keep GAP's names; offsets count characters, and `A-coref` and `B-coref` are booleans.
    """

    split: str = "development"

    cites: ClassVar[tuple[str, ...]] = ("webster2018",)

    def __call__(self, path: str) -> RecordTable:
        """Read `gap-SPLIT.tsv` in a folder, or a file."""
        file = find_first_file(path, f"gap-{self.split}.tsv", f"{self.split}.tsv")
        required = ("ID", "Text", *MENTIONS, *(f"{name}-offset" for name in MENTIONS))
        return read_tab_table(file, Columns(text="Text", id="ID"), convert=_convert, required=required)


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
