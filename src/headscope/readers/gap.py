"""GAP: a pronoun and two names in a paragraph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.core.reader import Columns, Reader, RecordTable, Unreadable
from headscope.data.reading.locate import find_first_file
from headscope.data.reading.tab_separated import expect_columns, read_tab_table

MENTIONS = ("Pronoun", "A", "B")
TRUTHS = {"TRUE": True, "FALSE": False}


@dataclass(frozen=True)
class Gap(Reader):
    """GAP's development, validation or test set: who does the pronoun mean (Webster et al., 2018)?

    The columns keep GAP's names; offsets are numbers of letters, and `A-coref` and `B-coref` are truth values.
    """

    split: str = "development"

    cites: ClassVar[tuple[str, ...]] = ("webster2018",)

    def __call__(self, place: str) -> RecordTable:
        """The rows of `gap-SPLIT.tsv` in a folder, or of a file."""
        path = find_first_file(place, f"gap-{self.split}.tsv", f"{self.split}.tsv")
        table = read_tab_table(path, Columns(text="Text", id="ID"), typed=_typed)
        expect_columns(path, table, ("ID", "Text", *MENTIONS, *(f"{name}-offset" for name in MENTIONS)))
        return table


def _typed(row: dict[str, Any]) -> Mapping[str, Any]:
    for name in MENTIONS:
        at = row[f"{name}-offset"]
        if not (at.isascii() and at.isdigit()):
            raise Unreadable(f"the column '{name}-offset' is {at!r}, where a whole number is expected")
        row[f"{name}-offset"] = start = int(at)
        if not row["Text"].startswith(row[name], start):
            found = row["Text"][start : start + len(row[name])]
            raise Unreadable(f"at letter {start} of the text stands {found!r}, not {row[name]!r} (column '{name}')")
    for name in ("A-coref", "B-coref"):
        if name in row:
            if row[name] not in TRUTHS:
                raise Unreadable(f"the column '{name}' is {row[name]!r}, where TRUE or FALSE is expected")
            row[name] = TRUTHS[row[name]]
    return row
