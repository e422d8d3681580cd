"""Attention rollout and attention flow (Abnar & Zuidema, 2020): do they say which tokens matter?"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.errors import InputError
from headscope.core.study import Results, option
from headscope.experiments.study import TaskStudy
from headscope_studies.attention_flow.paper import KINDS, PRONOUNS, SHOWN, VERB

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document
    from headscope.experiments.tasks import TaskData
    from headscope.experiments.tuned import TaskRun


@dataclass(frozen=True)
class AttentionFlow(TaskStudy):
    """Compare raw attention, rollout and flow with blank-out and input gradients (Abnar & Zuidema, 2020)."""

    mlm: str | None = option(None, "Masked language model for the pronouns of Figure 4, if the studied one is none.")

    cites = ("abnar2020", "linzen2016", "brunner2020", "kobayashi2020")
    kinds = KINDS
    steps = 5
    short = {"limit": 80, "train_limit": 1500, "epochs": 1, "learning_rate": 1e-4}  # noqa: RUF012  (as in TaskStudy)

    def run(self, model: Any, out: Path, **options: Any) -> Results:
        """Measure every task, and the pronouns of Figure 4 where there is a masked language model."""
        from headscope_studies.attention_flow.masked_words import measure_sentences

        lenses = {name: name for name in SHOWN}
        masked = measure_sentences(self.mlm or model, PRONOUNS, lenses, device=options.get("device"))
        if masked is None and self.mlm:
            raise InputError(
                f"mlm={self.mlm!r} predicts no masked words. Give a masked language model, or leave it out."
            )
        results = super().run(model, out, **options)
        return results if masked is None else {**results, "pronouns": masked}

    def read_bundled(self) -> "TaskData":
        """Return sentences from templates, which are bundled with the package."""
        from headscope.data.reading.read import read
        from headscope.experiments.tasks import TaskData

        train, test = read("agreement_templates:train"), read("agreement_templates:test")
        return TaskData("templates", VERB, train, test, "sentences from templates, bundled with the package")

    def measure_task(self, run: "TaskRun") -> "dict[str, xr.Dataset]":
        """Return `numbers`, the `shown` examples, and whole `maps` of one of them."""
        from headscope_studies.attention_flow.measure import measure_task

        return measure_task(run, self.example_id)

    def document(self, results: Results) -> "Document":
        """Return the report: verdicts, and every table and figure beside the paper's."""
        from headscope_studies.attention_flow.report import document

        return document(results)
