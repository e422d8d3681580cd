"""GAP's snippets, each as two consecutive passages."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.bundled.gap import gap_file, halve_at_sentence, read_gap_rows


@dataclass(frozen=True)
class GapHalves(Reader):
    """The bundled snippets of GAP (Webster et al., 2018), divided between the two sentences nearest to the middle.

    A stand-in for two consecutive paragraphs of a text, such as `paragraph_pairs` reads. A snippet of one sentence is
    left out. GAP is licensed under Apache-2.0, see GAP_LICENSE beside the data.
    """

    split: Literal["development", "validation"] = "development"

    needs_path: ClassVar[bool] = False
    cites: ClassVar[tuple[str, ...]] = ("webster2018",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:  # noqa: ARG002  (the data are in the package)
        """Return one row for each snippet of at least two sentences."""
        columns = Columns(text="text", pair="pair", id="ID")
        rows: list[Record | Malformed] = []
        for number, row in read_gap_rows(self.split):
            first, second = halve_at_sentence(row["Text"])
            if second:
                values = {"ID": row["ID"], "text": first, "pair": second, "document": row["URL"]}
                rows.append(Record(number, values))
        return RecordTable(gap_file(self.split), rows, columns, ("ID", "text", "pair", "document"))
