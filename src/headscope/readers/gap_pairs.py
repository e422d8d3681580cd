"""GAP as pairs: does the pronoun mean this name?"""

import bz2
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, Literal

from headscope.core.reader import Columns, Reader, Record, RecordTable
from headscope.core.spec import check_choices

NAMES = ("no", "yes")
AROUND = 3
"""Words that are quoted on each side of the pronoun, to say which of several is meant."""


@dataclass(frozen=True)
class GapPairs(Reader):
    """GAP's development or validation set (Webster et al., 2018), which comes with the package, as pairs of texts.

    Each paragraph makes two: those of its sentences in which the pronoun and both names stand, with all between them,
    and a claim such as 'In "He lost when his car broke", his means Bob.' The label says whether that is so. GAP is
    Apache-2.0; its licence lies beside the data as GAP_LICENSE.
    """

    split: Literal["development", "validation"] = "development"

    needs_place: ClassVar[bool] = False
    cites: ClassVar[tuple[str, ...]] = ("webster2018",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, place: str) -> RecordTable:  # noqa: ARG002  (the data lie in the package)
        """Two rows for each paragraph."""
        name = f"gap_{self.split}.tsv.bz2"
        text = bz2.decompress((files("headscope.data.bundled") / name).read_bytes()).decode()
        columns = Columns(text="Text", pair="claim", label="truth", id="ID", labels={"truth": NAMES})
        header = ("ID", "Text", "claim", "truth", "Pronoun", "name", "URL")
        return RecordTable(name, _rows(text), columns, header)


def sentences(text: str, places: Sequence[int]) -> str:
    """The part of a text from the sentence with the first of these places to the one with the last.

    >>> sentences("It rained. Ann met Eve. She won. All went home.", [11, 24])
    'Ann met Eve. She won.'
    """
    ends = [0, *(found.end() for found in re.finditer(r"[.!?][\"”')]*\s+(?=[\"“'(]?[A-Z0-9])", text)), len(text)]
    first = max(end for end in ends[:-1] if end <= min(places))
    last = min(end for end in ends if end > max(places))
    return text[first:last].strip()


def _rows(text: str) -> Iterator[Record]:
    header, *lines = text.splitlines()
    for number, line in enumerate(lines, 2):
        row = dict(zip(header.split("\t"), line.split("\t"), strict=True))
        for which in ("A", "B"):
            yield Record(number, _pair(row, which))


def _pair(row: Mapping[str, str], which: str) -> dict[str, Any]:
    """The paragraph and a claim about its pronoun."""
    start, pronoun = int(row["Pronoun-offset"]), row["Pronoun"]
    before, after = row["Text"][:start].split()[-AROUND:], row["Text"][start + len(pronoun) :].split()[:AROUND]
    places = [int(row[f"{each}-offset"]) for each in ("Pronoun", "A", "B")]
    quoted = " ".join([*before, pronoun, *after])
    return {
        "ID": f"{row['ID']}-{which}",
        "Text": sentences(row["Text"], places),
        "claim": f'In "{quoted}", {pronoun} means {row[which]}.',
        "truth": NAMES[row[f"{which}-coref"] == "TRUE"],
        "Pronoun": pronoun,
        "name": row[which],
        "URL": row["URL"],
    }
