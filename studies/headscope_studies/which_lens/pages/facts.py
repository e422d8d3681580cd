"""What the results of the study which-lens come to: the numbers of its page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.summary import list_tasks
from headscope.results.store import open_result
from headscope_studies.which_lens import report
from headscope_studies.which_lens.claims import CLAIMS, judge_models

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class LensFacts(StudyFacts):
    """The numbers of every model."""

    stem = "which_lens_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model."""
        return judge_models(measured)

    @cached_property
    def reports(self) -> dict[str, Document]:
        """The study's own report on every model."""
        return {label: report.document({"numbers": data}) for label, data in self.measured.items()}

    @property
    def by_task(self) -> list[tuple[str, xr.Dataset]]:
        """The numbers of each pair of a model and a task, with their names."""
        return [
            (f"{label}, {task}", data.sel(task=task))
            for label, data in self.models.items()
            for task in list_tasks(data)
        ]

    def average(self, name: str, **where: str) -> float:
        """Return the mean of a quantity over all models and tasks."""
        values = [float(data[name].sel(where)) for _, data in self.by_task if _has(data, where)]
        return float(np.nanmean(values))


def _has(data: xr.Dataset, where: Mapping[str, str]) -> bool:
    return all(label in data[dim].values for dim, label in where.items())


@cache
def read_facts(folder: Path = RESULTS) -> LensFacts:
    """Return the facts of all models in a folder of results."""
    stem = LensFacts.stem
    return LensFacts({path.stem.removeprefix(stem): open_result(path) for path in sorted(folder.glob(f"{stem}*.nc"))})


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]
