"""The argument reasoning comprehension task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file
from pathlib import Path
from typing import Any, ClassVar

from headscope.core.errors import InputError
from headscope.core.reader import Columns, Reader, RecordTable, Unreadable
from headscope.data.bundled.files import bundled_file
from headscope.data.reading.files import find_first_file
from headscope.data.reading.tab_separated import read_tab_table

CHOICES = ("warrant0", "warrant1")
LABEL = "correctLabelW0orW1"
BOOLEANS = {"True": True, "False": False}


SPLITS = ("train", "dev", "test")
"""The original files, which come with the package under Apache-2.0; the adversarial files do not."""


@dataclass(frozen=True)
class Arct(Reader):
    """Which of two warrants makes the reason support the claim (Habernal et al., 2018), also the adversarial sets.

    The text is the reason and the claim, `choices` are the two warrants, and the label is the index of the right one.
    All other columns keep their names. `split` is a file name without its ending: train, dev, train-adv-negated, …
    Without a path, train, dev and test are those that come with the package, licensed under Apache-2.0 (see LICENSE
    and NOTICE beside them).
    """

    split: str = "train"

    bundled: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("habernal2018",)

    def __call__(self, path: str) -> RecordTable:
        """Read one split from a folder (or its subfolders `original` and `adversarial`), a file, or the package."""
        if not path:
            return self._read_bundled()
        folders = ("", "original", "adversarial")
        names = [str(Path(folder) / f"{self.split}.{end}") for folder in folders for end in ("tsv", "csv")]
        return _read_file(find_first_file(path, *names))

    def _read_bundled(self) -> RecordTable:
        if self.split not in SPLITS:
            raise InputError(
                f"The package holds the splits train, dev and test of ARCT, but got '{self.split}'. Say where other "
                f"files are: arct:{self.split}@PATH."
            )
        with as_file(bundled_file(f"arct/{self.split}.tsv")) as file:
            table = _read_file(file)
            return replace(table, name=f"arct/{self.split}.tsv", rows=list(table.rows))


def _read_file(file: Path) -> RecordTable:
    columns = Columns(text="text", label=LABEL, id="#id", choices="choices", labels={LABEL: CHOICES})
    return read_tab_table(file, columns, convert=_convert, required=("#id", *CHOICES, LABEL, "reason", "claim"))


def _convert(row: dict[str, Any]) -> Mapping[str, Any]:
    for name in ("reason", "claim", *CHOICES):
        if not row[name].strip():
            raise Unreadable(f"the {name} (column '{name}') is empty")
    for name in ("adversarial", "swapped"):
        row |= {name: BOOLEANS.get(row[name], row[name])} if name in row else {}
    return {"text": f"{row['reason']} {row['claim']}", "choices": (row["warrant0"], row["warrant1"]), **row}
