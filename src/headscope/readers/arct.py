"""The argument reasoning comprehension task."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.reader import Columns, Reader, RecordTable, Unreadable
from headscope.data.reading.locate import find_first_file
from headscope.data.reading.tab_separated import expect_columns, read_tab_table

CHOICES = ("warrant0", "warrant1")
LABEL = "correctLabelW0orW1"
TRUTHS = {"True": True, "False": False}


@dataclass(frozen=True)
class Arct(Reader):
    """Which of two warrants makes the reason support the claim (Habernal et al., 2018), also the adversarial sets.

    The text is the reason and the claim, the two warrants are `choices`, the label is the right one; all columns
    travel by their names. `split` is a file's name without its ending: train, dev, test, train-adv-negated, …
    """

    split: str = "train"

    def __call__(self, place: str) -> RecordTable:
        """The rows of one split in a folder (or its folders `original` and `adversarial`), or of a file."""
        folders = ("", "original", "adversarial")
        names = [str(Path(folder) / f"{self.split}.{end}") for folder in folders for end in ("tsv", "csv")]
        path = find_first_file(place, *names)
        table = read_tab_table(path, Columns(text="text", label=LABEL, id="#id", labels={LABEL: CHOICES}), typed=_typed)
        expect_columns(path, table, ("#id", *CHOICES, LABEL, "reason", "claim"))
        return table


def _typed(row: dict[str, Any]) -> Mapping[str, Any]:
    for name in ("reason", "claim", *CHOICES):
        if not row[name].strip():
            raise Unreadable(f"the {name} (column '{name}') is empty")
    for name in ("adversarial", "swapped"):
        row |= {name: TRUTHS.get(row[name], row[name])} if name in row else {}
    return {"text": f"{row['reason']} {row['claim']}", "choices": (row["warrant0"], row["warrant1"]), **row}
