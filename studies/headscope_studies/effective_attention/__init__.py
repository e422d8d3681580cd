"""Effective attention on GLUE (Sun & Marasović, 2021): every table and figure, and which claims hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.core.study import Results, option
from headscope.experiments.study import TaskStudy
from headscope_studies.effective_attention.paper import KINDS

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document
    from headscope.experiments.tuned import TaskRun


@dataclass(frozen=True)
class EffectiveAttention(TaskStudy):
    """Compare raw with effective attention before and after fine-tuning (Sun & Marasović, 2021)."""

    classifier: str = option("cnn", "Classifier of patterns: cnn, rules, both, or the .safetensors file of your own.")

    cites = ("sun2021", "brunner2020", "kovaleva2019", "kobayashi2020")
    kinds = KINDS
    steps = 7
    own_facts = ("classifier",)

    def __post_init__(self) -> None:
        from headscope.patterns.classify.classify import require_classifier

        super().__post_init__()
        require_classifier(self.classifier)

    def measure_task(self, run: "TaskRun") -> "dict[str, xr.Dataset]":
        """Return `numbers`, evaluation `times`, and `maps` of one head on one example."""
        from headscope_studies.effective_attention.measure import measure_task

        return measure_task(run, self.classifier, self.example_id)

    def document(self, results: Results) -> "Document":
        """Return the report: verdicts, and every table and figure beside the paper's."""
        from headscope_studies.effective_attention.report import document

        return document(results)
