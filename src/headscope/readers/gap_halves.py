"""GAP's snippets, each as two consecutive passages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.core.reader import Columns
from headscope.data.bundled.gap import GapTask, halve_at_sentence


@dataclass(frozen=True)
class GapHalves(GapTask):
    """The bundled snippets of GAP (Webster et al., 2018), divided between the two sentences nearest to the middle.

    A stand-in for two consecutive paragraphs of a text, such as `paragraph_pairs` reads. A snippet of one sentence is
    left out. GAP is licensed under Apache-2.0, see GAP_LICENSE beside the data.
    """

    cites: ClassVar[tuple[str, ...]] = ("webster2018",)
    columns: ClassVar[Columns] = Columns(text="text", pair="pair", id="ID")
    header: ClassVar[tuple[str, ...]] = ("ID", "text", "pair", "document")

    def make_rows(self, paragraph: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return one row for a snippet of at least two sentences."""
        first, second = halve_at_sentence(paragraph["Text"])
        row = {"ID": paragraph["ID"], "text": first, "pair": second, "document": paragraph["URL"]}
        return [row] if second else []
