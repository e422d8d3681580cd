"""Which picture of attention is true? Lenses beside what happens when an edge, or a token, is taken away."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.core.study import Results, option
from headscope.experiments.study import TaskStudy

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document
    from headscope.experiments.tuned import TaskRun


@dataclass(frozen=True)
class WhichLens(TaskStudy):
    """Compare what lenses say of edges and tokens with what taking these away does to a tuned model."""

    rows: int = option(
        1, "Rows of every map from which edges are taken away: a query and a head of each layer and input."
    )
    keys: int = option(8, "Edges that are taken away from each of these rows.")

    cites = ("sun2021", "kobayashi2020", "ferrando2022", "mohebbi2023", "deyoung2020")
    kinds = {"RTE": "does one text follow from the other?", "SST-2": "is a sentence positive?"}  # noqa: RUF012
    steps = 4
    own_facts = ("rows", "keys")
    short = {"limit": 20, "train_limit": 320, "epochs": 1, "learning_rate": 1e-4}  # noqa: RUF012  (as in TaskStudy)

    def measure_task(self, run: "TaskRun") -> "dict[str, xr.Dataset]":
        """Return the numbers of a task."""
        from headscope_studies.which_lens.measure import measure_task

        return measure_task(run, rows=self.rows, keys=self.keys)

    def document(self, results: Results) -> "Document":
        """Return the report: verdicts, and how well each lens agrees with every judge."""
        from headscope_studies.which_lens.report import document

        return document(results)
