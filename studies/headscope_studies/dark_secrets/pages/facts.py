"""What the results of the study dark-secrets come to: the numbers of its page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import NOT_REPRODUCED, JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.relation_heads import find_best_head
from headscope.experiments.summary import list_tasks
from headscope.results.store import open_result
from headscope_studies.dark_secrets import report
from headscope_studies.dark_secrets.claims import CLAIMS, judge_models, name_related
from headscope_studies.dark_secrets.disabled import count_raw, count_significant
from headscope_studies.dark_secrets.semantic import SAME
from headscope_studies.dark_secrets.starts import MAJORITY, RANDOM, TUNED

RESULTS = Path(__file__).parents[1] / "results"

EXTRA_RESULTS = ("relations", "semantic", "shown_relation")
RELATED = ("relations", "semantic")
"""Results on related words."""


@dataclass(frozen=True)
class DarkFacts(StudyFacts):
    """The numbers of every model, and its heads on related words with the maps of one of them."""

    more: Mapping[str, Mapping[str, xr.Dataset]]

    stem = "dark_secrets_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, and those on its relations."""
        return judge_models(measured, self.related)

    @cached_property
    def reports(self) -> dict[str, Document]:
        """The study's own report on every model."""
        return {label: report.document({"numbers": data, **self.more[label]}) for label, data in self.measured.items()}

    @property
    def related(self) -> dict[str, dict[str, xr.Dataset]]:
        """The weights between related words of every model, by the kind of related words."""
        found = {name: {label: part[name] for label, part in self.more.items() if name in part} for name in RELATED}
        return {name: results for name, results in found.items() if results}

    @property
    def by_task(self) -> list[tuple[str, str, xr.Dataset]]:
        """The model, the task and the numbers of each pair of a model and a task."""
        return [(label, task, data.sel(task=task)) for label, data in self.models.items() for task in list_tasks(data)]

    @cached_property
    def shared(self) -> list[str]:
        """The tasks that every model was tuned on, which averages are over."""
        tasks: dict[str, dict[str, None]] = {}
        for label, task, _ in self.by_task:
            tasks.setdefault(self.names[label], {})[task] = None
        return [task for task in next(iter(tasks.values())) if all(task in known for known in tasks.values())]

    def average(self, shares: Callable[[xr.Dataset], xr.DataArray]) -> dict[str, float]:
        """Return by model the mean over shared tasks that have the share, of the mean over their seeds, in percent."""
        tuned: dict[str, list[float]] = {}
        for label, task, data in self.by_task:
            if task in self.shared:
                tuned.setdefault(self.names[label], []).append(float(shares(data)))
        return {name: 100 * float(np.nanmean(values)) for name, values in tuned.items()}


@cache
def read_facts(folder: Path = RESULTS) -> DarkFacts:
    """Return the facts of all models in a folder of results."""
    stem, ends = DarkFacts.stem, tuple(f"_{name}" for name in EXTRA_RESULTS)
    paths = sorted(folder.glob(f"{stem}*.nc"), key=lambda path: path.stem)
    labels = {path.stem.removeprefix(stem): path for path in paths if not path.stem.endswith(ends)}
    more = {label: _read_extra(path) for label, path in labels.items()}
    return DarkFacts({label: open_result(path) for label, path in labels.items()}, more)


def _read_extra(path: Path) -> dict[str, xr.Dataset]:
    """Return the other results beside the file of a model, by their names."""
    files = {name: path.with_name(f"{path.stem}_{name}.nc") for name in EXTRA_RESULTS}
    return {name: open_result(file) for name, file in files.items() if file.is_file()}


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


def find_unlearned(facts: DarkFacts) -> list[dict[str, Any]]:
    """Return the tuned models that are not shown to be better than the most common label; regressions have none."""
    rows = []
    for label, task, data in facts.by_task:
        raw, majority = data.sel(lens="raw"), float(data["majority"])
        if float(raw["score_low"]) <= majority:
            rows.append({"label": facts.names[label], "task": task, "score": float(raw["score"]), "majority": majority})
    return rows


def list_fewer_heads(facts: DarkFacts) -> dict[str, list[str]]:
    """Return by model the tasks on which fewer than a third of the heads are shown to attend simply to these tokens."""
    claim = next(claim for claim in facts.claims if claim.quantity == "special_share")
    denied: dict[str, list[str]] = {}
    for (label, task), cell in facts.cells(claim).items():
        if cell.verdict == NOT_REPRODUCED:
            denied.setdefault(facts.names[label], []).append(task)
    return denied


def count_seeds(facts: DarkFacts) -> dict[str, int]:
    """Return by task the number of its seeds, which is the same for all models."""
    return {task: data.sizes.get("seed", 1) for data in facts.measured.values() for task in list_tasks(data)}


def list_special(facts: DarkFacts) -> dict[str, dict[str, float]]:
    """Return by model and task the share of heads that attend simply to [CLS] and [SEP], mean of seeds, in percent."""
    shares: dict[str, dict[str, float]] = {}
    for label, task, data in facts.by_task:
        if np.isfinite(share := float(data["special_share"])):
            shares.setdefault(facts.names[label], {})[task] = 100 * share
    return shares


def count_changes(facts: DarkFacts) -> dict[str, dict[str, int]]:
    """Return by model the number of changes of the score by one head, over tasks, and of those that are significant.

    `losses` and `gains` are so with every seed after Holm's correction.
    """
    counts: dict[str, dict[str, int]] = {}
    for label, data in facts.measured.items():
        own = counts.setdefault(facts.names[label], {"changes": 0, "losses": 0, "gains": 0})
        for task in list_tasks(data):
            losses, gains = count_significant(data.sel(task=task))
            own["losses"] += losses
            own["gains"] += gains
        own["changes"] += data.sizes["task"] * data.sizes["layer"] * data.sizes["head"]
    return counts


def compare_starts(facts: DarkFacts, task: str) -> dict[str, dict[str, float]]:
    """Return by model the score on a task from pretrained and from random weights, and of the most common label."""
    names = {"pretrained": TUNED, "random": RANDOM, "majority": MAJORITY}
    return {
        facts.names[label]: {name: float(data["start_score"].sel(start=start)) for name, start in names.items()}
        for label, known, data in facts.by_task
        if known == task
    }


def list_random(facts: DarkFacts) -> list[str]:
    """Return the classifications that were learned from random weights, by any model."""
    return list(
        dict.fromkeys(
            task
            for _, task, data in facts.by_task
            if np.isfinite(data["start_score"].sel(start=[MAJORITY, RANDOM])).all()
        )
    )


def find_worst_layer(facts: DarkFacts) -> dict[str, Any]:
    """Return the model, the task and the layer without which the score falls most, and the change in points."""
    falls = []
    for label, task, data in facts.by_task:
        change = data["layer_change"]
        layer = int(change["layer"][int(change.argmin("layer"))])
        falls.append({"label": facts.names[label], "task": task, "layer": layer, "change": 100 * float(change.min())})
    return min(falls, key=lambda fall: float(fall["change"]))


def average_raw(facts: DarkFacts) -> float:
    """Return the share of heads with p < 0.05, taken for each tuned model that has it and then averaged, in percent."""
    shares = [
        count_raw(data.sel(task=task, seed=seed))
        for data in facts.measured.values()
        for task in list_tasks(data)
        for seed in data["seed"].values
    ]
    return 100 * float(np.nanmean(shares))


def list_raw(facts: DarkFacts) -> list[str]:
    """Return the tasks with p-values before correction."""
    return [
        task for data in facts.measured.values() for task in list_tasks(data) if count_raw(data.sel(task=task)) >= 0
    ]


def summarize_related(facts: DarkFacts, kind: str) -> list[dict[str, Any]]:
    """Return by model how many relations have a head that encodes them, and which leads."""
    rows = []
    for label, data in facts.related[kind].items():
        (claim, _) = facts.judged_all[name_related(kind, label)]
        layer, head, name, gain = find_best_relation(data.sel(task=[task.task for task in claim.tasks]))
        rows.append(
            {
                "label": label,
                "n": int(read_provenance(data)["n"]),
                "relations": len(claim.tasks),
                "has_head": sum(task.verdict in facts.exact for task in claim.tasks),
                "best": f"{name}, L{layer}H{head}",
                "gain": gain,
            }
        )
    return rows


def list_same_words(facts: DarkFacts) -> list[float]:
    """Return by model the largest weight above that at the same distance between two mentions that are equal words."""
    results = [data["best_gain_change"] for data in facts.related["semantic"].values()]
    return [float(gain.sel(task=SAME)) for gain in results if SAME in gain["task"].values]


def find_best_relation(relations: xr.Dataset) -> tuple[int, int, str, float]:
    """Return the layer and the head with the largest weight above that at the same distance, the relation, and this."""
    relation = relations.isel(task=int(relations["best_gain_change"].values.argmax()))
    return *find_best_head(relation), str(relation["task"].item()), float(relation["best_gain_change"])


def list_reduced(facts: DarkFacts) -> list[dict[str, Any]]:
    """Return the tasks of which not all inputs of the dev set were studied, with the number of both."""
    sizes = {task: (int(data["n"]), int(data["whole_dev"])) for _, task, data in facts.by_task}
    return [{"task": task, "n": n, "whole": whole} for task, (n, whole) in sizes.items() if n < whole]


def list_fewer(facts: DarkFacts) -> list[dict[str, Any]]:
    """Return the tasks with fewer seeds than others, with their number."""
    most = max(facts.seeds.values())
    seeds = {task: facts.seeds[label] for label, task, _ in facts.by_task}
    return [{"task": task, "seeds": count} for task, count in seeds.items() if count < most]


def list_margins(facts: DarkFacts) -> dict[str, list[float]]:
    """Return by task half the width of the median interval of the change without one head, in points."""
    margins: dict[str, list[float]] = {}
    for _, task, data in facts.by_task:
        half = (data["head_change_high"] - data["head_change_low"]) / 2
        margins.setdefault(task, []).append(100 * float(half.median()))
    return margins
