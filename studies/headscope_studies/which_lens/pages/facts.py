"""What the results of the study which-lens come to: the numbers of its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import HOLDS, MOOT, JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.summary import list_tasks
from headscope.results.store import open_result
from headscope_studies.which_lens import report
from headscope_studies.which_lens.claims import CLAIMS, LONG, judge_models

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
            (f"{self.names[label]}, {task}", data.sel(task=task))
            for label, data in self.models.items()
            for task in list_tasks(data)
        ]

    @property
    def long(self) -> list[tuple[str, xr.Dataset]]:
        """The pairs in which most inputs have more tokens than a head has value dimensions."""
        return [(name, data) for name, data in self.by_task if float(data["long_share"]) >= LONG]

    @property
    def learned(self) -> list[tuple[str, xr.Dataset]]:
        """The pairs whose model is right more often than the most common label, so that it has predictions to lose."""
        return [(name, data) for name, data in self.by_task if float(data["score"]) > float(data["majority"])]

    @property
    def unlearned(self) -> list[tuple[str, float, float]]:
        """The pairs whose model is not shown to be right more often than the most common label, with both shares."""
        return [
            (name, 100 * float(data["score"]), 100 * float(data["majority"]))
            for name, data in self.by_task
            if float(data["score_low"]) <= float(data["majority"])
        ]

    @property
    def sizes(self) -> dict[str, str]:
        """The inputs of each pair of a model and a task, with the seeds where there are several."""
        return {
            f"{self.names[label]}, {task}": f"{int(data.sel(task=task)['n'])}"
            + (f" × {self.seeds[label]} seeds" if self.seeds[label] > 1 else "")
            for label, data in self.models.items()
            for task in list_tasks(data)
        }

    def count_shown(self, lens: str, than: str, quantity: str, **where: str) -> str:
        """Return on how many pairs the claim that a lens is better than another holds, of those it applies to."""
        place = {**where, "lens": lens, "than": than}
        claim = next(claim for claim in self.claims if claim.quantity == quantity and dict(claim.where) == place)
        kinds = [cell.verdict for cell in self.cells(claim).values() if cell.verdict != MOOT]
        return f"{kinds.count(HOLDS)} of {len(kinds)}"

    def values(self, name: str, pairs: Sequence[tuple[str, xr.Dataset]] | None = None, **where: str) -> list[float]:
        """Return a quantity of all pairs of a model and a task, or of some."""
        chosen = self.by_task if pairs is None else pairs
        found = [float(data[name].sel(where)) for _, data in chosen if _has(data, where)]
        return [value for value in found if np.isfinite(value)]

    def average(self, name: str, pairs: Sequence[tuple[str, xr.Dataset]] | None = None, **where: str) -> float:
        """Return the mean of a quantity over all models and tasks, or over some."""
        return float(np.mean(self.values(name, pairs, **where)))


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
