"""What the results of the study dark-secrets come to: the numbers of its page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.pages.facts import StudyFacts, count_kinds
from headscope.experiments.relation_heads import find_best_head
from headscope.experiments.summary import list_tasks
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope_studies.dark_secrets import report
from headscope_studies.dark_secrets.claims import CLAIMS, judge_models, name_relations
from headscope_studies.dark_secrets.disabled import count_significant
from headscope_studies.dark_secrets.starts import PRETRAINED, RANDOM, TUNED

RESULTS = Path(__file__).parents[1] / "results"

EXTRA_RESULTS = ("relations", "shown_relation")
REASONED = 800  # inputs, as the reason of the threshold says


@dataclass(frozen=True)
class DarkFacts(StudyFacts):
    """The numbers of every model, and its heads on related words with the maps of one of them."""

    more: Mapping[str, Mapping[str, xr.Dataset]]

    stem = "dark_secrets_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, and those on its relations."""
        return judge_models(measured, self.relations)

    @cached_property
    def reports(self) -> dict[str, Document]:
        """The study's own report on every model."""
        return {label: report.document({"numbers": data, **self.more[label]}) for label, data in self.measured.items()}

    @property
    def relations(self) -> dict[str, xr.Dataset]:
        """The weights between related words of every model."""
        return {label: results["relations"] for label, results in self.more.items() if "relations" in results}

    @property
    def by_task(self) -> list[tuple[str, str, xr.Dataset]]:
        """The model, the task and the numbers of each pair of a model and a task."""
        return [(label, task, data.sel(task=task)) for label, data in self.models.items() for task in list_tasks(data)]

    @property
    def tasks(self) -> list[str]:
        """The tasks of all models."""
        return list(dict.fromkeys(task for _, task, _ in self.by_task))


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


@dataclass(frozen=True)
class VerdictCounts:
    """How many verdicts on some claims are of which kind, from those that hold to those that do not apply."""

    claims: int
    kinds: dict[str, int]

    @property
    def total(self) -> int:
        """The number of all verdicts."""
        return sum(self.kinds.values())

    @property
    def pairs(self) -> int:
        """The number of verdicts on each claim."""
        return self.total // max(self.claims, 1)


def count_verdicts(facts: DarkFacts, judged: Mapping[str, Iterable[JudgedClaim]]) -> VerdictCounts:
    """Return the counts of all verdicts on models, or on their relations."""
    claims = [claim for group in judged.values() for claim in group]
    counts = count_kinds(claims)
    return VerdictCounts(
        len({claim.text for claim in claims}), {kind: counts[kind] for kind in facts.kinds if counts[kind]}
    )


def count_never(facts: DarkFacts) -> int:
    """Return how many claims hold for no pair of a model and a task."""
    return sum(not any(verdict in facts.exact for verdict in facts.verdicts(claim)) for claim in CLAIMS)


def find_unlearned(facts: DarkFacts) -> list[dict[str, Any]]:
    """Return the tuned models that are not shown to be better than the most common label; regressions have none."""
    rows = []
    for label, task, data in facts.by_task:
        raw, majority = data.sel(lens="raw"), float(data["majority"])
        if float(raw["score_low"]) <= majority:
            rows.append({"label": label, "task": task, "score": float(raw["score"]), "majority": majority})
    return rows


def summarize_disabled(facts: DarkFacts) -> list[dict[str, Any]]:
    """Return by model the changes of the score without a head or layer, in points, each with a value by task."""
    rows = []
    for label, data in facts.models.items():
        measured, change = facts.measured[label], data["head_change"]
        sizes = abs(measured["head_change"]).transpose("task", ...).values
        counts = [count_significant(measured.sel(task=task)) for task in list_tasks(data)]
        rows.append(
            {
                "label": label,
                "not_lower": [100 * float((change.sel(task=task) >= 0).mean()) for task in list_tasks(data)],
                "mean": 100 * data["mean_head_change"].values,
                "mean_size": 100 * sizes.reshape(len(sizes), -1).mean(-1),
                "changes": change.size,
                "losses": sum(losses for losses, _ in counts),
                "gains": sum(gains for _, gains in counts),
                "best_head": 100 * data["best_head_change"].values,
                "best_layer": 100 * data["best_layer_change"].values,
            }
        )
    return rows


def list_start_scores(facts: DarkFacts, task: str, start: str = RANDOM) -> list[float]:
    """Return the score of every model that was studied on a task, from one of the starts."""
    scores = [data["start_score"].sel(start=start) for data in facts.models.values()]
    return [float(score.sel(task=task)) for score in scores if task in score["task"]]


def list_tuning_gains(facts: DarkFacts) -> list[float]:
    """Return what fine-tuning gains over the pretrained model with an untrained head, in points, pair by pair."""
    scores = [data["start_score"] for _, _, data in facts.by_task]
    return [100 * float(score.sel(start=TUNED) - score.sel(start=PRETRAINED)) for score in scores]


def summarize_relations(facts: DarkFacts) -> list[dict[str, Any]]:
    """Return by model how many relations have a head that encodes them, how many heads those are, and which lead."""
    rows = []
    for label, data in facts.relations.items():
        has_head, few_heads = (
            [task.verdict in facts.exact for task in claim.tasks] for claim in facts.judged_all[name_relations(label)]
        )
        rows.append(
            {
                "label": label,
                "sentences": int(read_provenance(data)["n"]),
                "relations": len(has_head),
                "has_head": sum(has_head),
                "few_heads": sum(few_heads),
                "no_head": int((data["encoding"] == 0).sum()),
                "encoding": 100 * data["encoding"].values,
                "best": list_best_relations(data),
            }
        )
    return rows


def list_best_relations(relations: xr.Dataset, count: int = 3) -> list[dict[str, Any]]:
    """Return the relations with the largest weight above that at the same distance, and the head of each."""
    rows = []
    for at in np.argsort(-relations["best_gain_change"].values)[:count]:
        relation = relations.isel(task=int(at))
        layer, head = find_best_head(relation)
        gain = float(relation["best_gain_change"])
        rows.append({"relation": str(relation["task"].item()), "layer": layer, "head": head, "gain": gain})
    return rows


def count_holding(facts: DarkFacts, factor: float) -> int:
    """Return how many verdicts hold with all thresholds multiplied by a factor."""
    counts = count_scaled(facts.every, factor)
    return sum(counts[kind] for kind in facts.exact)


def list_reduced(facts: DarkFacts) -> list[dict[str, Any]]:
    """Return the tasks of which not all inputs of the dev set were studied, with the number of both."""
    sizes = {task: (int(data["n"]), int(data["whole_dev"])) for _, task, data in facts.by_task}
    return [{"task": task, "n": n, "whole": whole} for task, (n, whole) in sizes.items() if n < whole]


def list_small_sizes(facts: DarkFacts) -> list[int]:
    """Return the numbers of inputs that are smaller than the thresholds on gains were reasoned for."""
    return sorted({int(data["n"]) for _, _, data in facts.by_task if int(data["n"]) < REASONED})


def list_noise(sizes: Iterable[int]) -> list[float]:
    """Return two standard errors of a difference of two accuracies near 0.7, in points, by the number of inputs."""
    return [200 * (2 * 0.21 / n) ** 0.5 for n in sizes]


def list_margins(facts: DarkFacts) -> dict[str, list[float]]:
    """Return by task half the width of the median interval of the change without one head, in points."""
    margins: dict[str, list[float]] = {}
    for _, task, data in facts.by_task:
        half = (data["head_change_high"] - data["head_change_low"]) / 2
        margins.setdefault(task, []).append(100 * float(half.median()))
    return margins
