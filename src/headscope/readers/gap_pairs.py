"""GAP as text pairs: does the pronoun refer to this name?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.core.reader import Columns
from headscope.data.bundled.gap import GapTask, crop_to_sentences

CLASSES = ("no", "yes")
CONTEXT = 3
"""Words to quote on each side of the pronoun, because a paragraph may have several."""


@dataclass(frozen=True)
class GapPairs(GapTask):
    """The bundled development or validation set of GAP (Webster et al., 2018) as pairs of texts.

    Each paragraph gives two pairs. The text is the sentences from the first to the last of the pronoun and both names;
    the pair is a claim such as 'In "He lost when his car broke", his means Bob.' The label says whether the claim is
    true. GAP is licensed under Apache-2.0, see GAP_LICENSE beside the data.
    """

    cites: ClassVar[tuple[str, ...]] = ("webster2018",)
    columns: ClassVar[Columns] = Columns(text="Text", pair="claim", label="truth", id="ID", labels={"truth": CLASSES})
    header: ClassVar[tuple[str, ...]] = ("ID", "Text", "claim", "truth", "Pronoun", "name", "URL")

    def make_rows(self, paragraph: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return two rows for each paragraph."""
        return [_make_pair(paragraph, name) for name in ("A", "B")]


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
