"""The argument reasoning comprehension task."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.reader import Columns, Reader, RecordTable, Unreadable
from headscope.data.reading.files import find_first_file
from headscope.data.reading.tab_separated import read_tab_table

CHOICES = ("warrant0", "warrant1")
LABEL = "correctLabelW0orW1"
BOOLEANS = {"True": True, "False": False}


@dataclass(frozen=True)
class Arct(Reader):
    """Which of two warrants makes the reason support the claim (Habernal et al., 2018), also the adversarial sets.

    The text is the reason and the claim, `choices` are the two warrants, and the label is the index of the right one.
    All other columns keep their names. `split` is a file name without its ending: train, dev, train-adv-negated, …
    """

    split: str = "train"

    def __call__(self, path: str) -> RecordTable:
        """Read one split from a folder (or its subfolders `original` and `adversarial`), or a file."""
        folders = ("", "original", "adversarial")
        names = [str(Path(folder) / f"{self.split}.{end}") for folder in folders for end in ("tsv", "csv")]
        columns = Columns(text="text", label=LABEL, id="#id", labels={LABEL: CHOICES})
        required = ("#id", *CHOICES, LABEL, "reason", "claim")
        return read_tab_table(find_first_file(path, *names), columns, convert=_convert, required=required)


def _convert(row: dict[str, Any]) -> Mapping[str, Any]:
    for name in ("reason", "claim", *CHOICES):
        if not row[name].strip():
            raise Unreadable(f"the {name} (column '{name}') is empty")
    for name in ("adversarial", "swapped"):
        row |= {name: BOOLEANS.get(row[name], row[name])} if name in row else {}
    return {"text": f"{row['reason']} {row['claim']}", "choices": (row["warrant0"], row["warrant1"]), **row}
