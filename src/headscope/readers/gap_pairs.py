"""GAP as text pairs: does the pronoun refer to this name?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from headscope.core.reader import Columns, Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.bundled.gap import crop_to_sentences, gap_file, read_gap_rows

CLASSES = ("no", "yes")
CONTEXT = 3
"""Words to quote on each side of the pronoun, because a paragraph may have several."""


@dataclass(frozen=True)
class GapPairs(Reader):
    """The bundled development or validation set of GAP (Webster et al., 2018) as pairs of texts.

    Each paragraph gives two pairs. The text is the sentences from the first to the last of the pronoun and both names;
    the pair is a claim such as 'In "He lost when his car broke", his means Bob.' The label says whether the claim is
    true. GAP is licensed under Apache-2.0, see GAP_LICENSE beside the data.
    """

    split: Literal["development", "validation"] = "development"

    needs_path: ClassVar[bool] = False
    cites: ClassVar[tuple[str, ...]] = ("webster2018",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:  # noqa: ARG002  (the data are in the package)
        """Return two rows for each paragraph."""
        columns = Columns(text="Text", pair="claim", label="truth", id="ID", labels={"truth": CLASSES})
        header = ("ID", "Text", "claim", "truth", "Pronoun", "name", "URL")
        rows = (
            Record(number, _make_pair(row, name)) for number, row in read_gap_rows(self.split) for name in ("A", "B")
        )
        return RecordTable(gap_file(self.split), rows, columns, header)


def _make_pair(row: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return the paragraph with a claim that its pronoun refers to the name A or B."""
    start, pronoun = int(row["Pronoun-offset"]), row["Pronoun"]
    before, after = row["Text"][:start].split()[-CONTEXT:], row["Text"][start + len(pronoun) :].split()[:CONTEXT]
    quote = " ".join([*before, pronoun, *after])
    return {
        "ID": f"{row['ID']}-{name}",
        "Text": crop_to_sentences(row["Text"], [int(row[f"{mention}-offset"]) for mention in ("Pronoun", "A", "B")]),
        "claim": f'In "{quote}", {pronoun} means {row[name]}.',
        "truth": CLASSES[row[f"{name}-coref"] == "TRUE"],
        "Pronoun": pronoun,
        "name": row[name],
        "URL": row["URL"],
    }
