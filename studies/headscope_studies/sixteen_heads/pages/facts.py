"""What the results of the study sixteen-heads come to: the numbers of its page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import Claim, JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.summary import list_tasks
from headscope.experiments.verdicts import judge_together
from headscope.results.store import open_result
from headscope_studies.sixteen_heads import report
from headscope_studies.sixteen_heads.claims import ALL, CLAIMS, TRANSLATION_CLAIMS, complete_sites, complete_tasks
from headscope_studies.sixteen_heads.translation import SITES

RESULTS = Path(__file__).parents[1] / "results"

TRANSLATION = "translation"


@dataclass(frozen=True)
class HeadFacts(StudyFacts):
    """The numbers of every model, and those of the sites of a model that translates."""

    sites: xr.Dataset

    stem = "sixteen_heads_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, and those on translation."""
        return judge_together(self.pair_claims(measured))

    def pair_claims(self, measured: Mapping[str, xr.Dataset]) -> dict[str, tuple[Sequence[Claim], xr.Dataset]]:
        """Return the claims on every model and on translation, with the numbers they are judged on."""
        models = {label: (CLAIMS, data) for label, data in measured.items()}
        return {**models, TRANSLATION: (TRANSLATION_CLAIMS, self.sites)}

    @cached_property
    def reports(self) -> dict[str, Document]:
        """The study's own report on every model."""
        return {
            label: report.document({"numbers": data, TRANSLATION: self.sites}) for label, data in self.measured.items()
        }

    @property
    def by_task(self) -> list[tuple[str, str, xr.Dataset]]:
        """The numbers of each pair of a model and a task, with their names."""
        return [(label, task, data.sel(task=task)) for label, data in self.models.items() for task in list_tasks(data)]


@cache
def read_facts(folder: Path = RESULTS) -> HeadFacts:
    """Return the facts of all models in a folder of results."""
    stem = HeadFacts.stem
    results = {path.stem.removeprefix(stem): open_result(path) for path in sorted(folder.glob(f"{stem}*.nc"))}
    sites = results.pop(TRANSLATION)
    return HeadFacts({label: complete_tasks(data) for label, data in results.items()}, complete_sites(sites))


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


def average_shares(facts: HeadFacts, name: str, **where: Any) -> float:
    """Return a share of heads, layers or the score, taken for each fine-tuned model and then averaged, in percent.

    Models that are not shown to have learned their task are left out.
    """
    shares = []
    for data in facts.measured.values():
        learned = ~(data["score_low"].min("seed") <= data["majority"].min("seed"))
        shares += np.ravel(data[name].sel(where).sel(task=learned).values).tolist()
    return 100 * float(np.mean(shares))


def average_sites(facts: HeadFacts, name: str, site: str = ALL, **where: Any) -> float:
    """Return a share of the heads at a site, or of the score, taken for each translator, then averaged; in percent."""
    return 100 * float(facts.sites[name].sel(task=site, **where).mean())


def average_during(facts: HeadFacts, trained: int) -> float:
    """Return the correlation of importance at a part of training with that at the end, mean of sites and seeds."""
    return float(facts.sites["determined"].sel(trained=trained, task=list(SITES)).mean())


def list_margins(models: Iterable[xr.Dataset]) -> list[float]:
    """Return half the width of the median interval of one head's effect, in percent of the score, task by task."""
    margins = []
    for data in models:
        width = (data["change_high"] - data["change_low"]) / 2 / abs(data["score"])
        margins += [100 * float(width.sel(task=task).median()) for task in list_tasks(data)]
    return [margin for margin in margins if np.isfinite(margin)]


def list_reduced(facts: HeadFacts) -> list[dict[str, Any]]:
    """Return the tasks of which not all inputs of the dev set were studied with some model, with the number of both."""
    rows = [{"task": task, "n": int(data["n"]), "whole": int(data["whole_dev"])} for _, task, data in facts.by_task]
    return list({row["task"]: row for row in rows if row["n"] < row["whole"]}.values())


def list_fewer(facts: HeadFacts) -> list[dict[str, Any]]:
    """Return the tasks and models with fewer seeds than others, with their number."""
    most = max(facts.seeds.values())
    pairs = [(label, task, facts.seeds[label]) for label, task, _ in facts.by_task]
    return [{"task": task, "model": facts.names[label], "seeds": count} for label, task, count in pairs if count < most]


def find_unlearned(facts: HeadFacts) -> dict[str, list[tuple[str, float, float]]]:
    """Return by task the models that are not shown to be better than its most common label: name, score, share of it.

    A task of numbers has no most common label: its share is NaN, and no model is listed.
    """
    unlearned: dict[str, list[tuple[str, float, float]]] = {}
    for label, task, data in facts.by_task:
        score, low, most_common = (float(data[name]) for name in ("score", "score_low", "majority"))
        if low <= most_common:
            unlearned.setdefault(task, []).append((label, score, most_common))
    return unlearned
