"""GAP with its pronoun left out: is the missing pronoun feminine or masculine?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.core.reader import Columns
from headscope.data.bundled.gap import GapTask, find_sentences

CLASSES = ("feminine", "masculine")
FEMININE = {"she", "her", "hers", "herself"}
BLANK = "_"
SHORT = 22
"""A sentence of at most this number of words is read without its paragraph, so that there are short texts too."""


@dataclass(frozen=True)
class GapPronouns(GapTask):
    """The bundled development or validation set of GAP (Webster et al., 2018) with its pronoun left out.

    Each paragraph gives one text, in which "_" is in place of the pronoun; the label says whether the pronoun is
    feminine or masculine. Where the sentence with the pronoun is short, the text is that sentence, otherwise it is the
    whole paragraph: so there are texts shorter and longer than a head's value dimensions. GAP is licensed under
    Apache-2.0, see GAP_LICENSE beside the data.
    """

    cites: ClassVar[tuple[str, ...]] = ("webster2018",)
    columns: ClassVar[Columns] = Columns(text="gapped", label="gender", id="ID", labels={"gender": CLASSES})
    header: ClassVar[tuple[str, ...]] = ("ID", "gapped", "gender", "Pronoun", "URL")

    def make_rows(self, paragraph: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return one row for each paragraph."""
        return [_leave_out(paragraph)]


def _leave_out(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the sentence or the paragraph without its pronoun, and the pronoun's gender."""
    text, pronoun, offset = row["Text"], row["Pronoun"], int(row["Pronoun-offset"])
    start, end = find_sentences(text, [offset])
    if len(text[start:end].split()) > SHORT:
        start, end = 0, len(text)
    return {
        "ID": row["ID"],
        "gapped": f"{text[start:offset]}{BLANK}{text[offset + len(pronoun) : end]}".strip(),
        "gender": CLASSES[pronoun.lower() not in FEMININE],
        "Pronoun": pronoun,
        "URL": row["URL"],
    }
