"""What the results of the attention-flow study come to: the numbers of its page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import MOOT, UNDECIDED, JudgedClaim, answer_seeds
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.summary import list_tasks
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope_studies.attention_flow import paper, report
from headscope_studies.attention_flow.claims import CLAIMS, judge_models
from headscope_studies.attention_flow.report import measure_saturation

RESULTS = Path(__file__).parents[1] / "results"

PAPER = "paper"
EXTRA_RESULTS = ("shown", "maps", "pronouns", "referents", "accuracy")
NAMES = {PAPER: "trained again"}
"""How models are called in figures that are not called by their files."""

SATURATED = 99
"""Percent of tokens that get the same flow from every position, above which a map is one ranking of tokens."""


@dataclass(frozen=True)
class FlowFacts(StudyFacts):
    """The numbers of every model, and the other results of each by their names."""

    more: Mapping[str, Mapping[str, xr.Dataset]]

    stem = "attention_flow_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset], subset: str = "all") -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, by all inputs or by those that are predicted correctly."""
        return judge_models(measured, subset)

    @cached_property
    def reports(self) -> dict[str, Document]:
        """The study's own report on every model."""
        return {label: report.document({"numbers": data, **self.more[label]}) for label, data in self.measured.items()}

    @property
    def every_pair(self) -> dict[str, xr.Dataset]:
        """The numbers of each pair of a model and a task over all inputs, by its name."""
        return {
            f"{NAMES.get(label, label)}, {task}": data.sel(task=task, subset="all")
            for label, data in self.models.items()
            for task in list_tasks(data)
        }


@cache
def read_facts(folder: Path = RESULTS) -> FlowFacts:
    """Return the facts of all models in a folder of results, the paper's own first."""
    stem, ends = FlowFacts.stem, tuple(f"_{name}" for name in EXTRA_RESULTS)
    paths = [path for path in sorted(folder.glob(f"{stem}*.nc")) if not path.stem.endswith(ends)]
    paths.sort(key=lambda path: (path.stem != f"{stem}{PAPER}", path.stem))
    labels = {path.stem.removeprefix(stem): path for path in paths}
    more = {label: _read_extra(path) for label, path in labels.items()}
    return FlowFacts({label: open_result(path) for label, path in labels.items()}, more)


def _read_extra(path: Path) -> dict[str, xr.Dataset]:
    """Return the other results beside the file of a model, by their names."""
    files = {name: path.with_name(f"{path.stem}_{name}.nc") for name in EXTRA_RESULTS}
    return {name: open_result(file) for name, file in files.items() if file.is_file()}


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


def count_true(facts: FlowFacts, text: str) -> str:
    """Return for how many pairs to which it applies the claim that begins so holds, such as 2 of 3."""
    (claim,) = [claim for claim in CLAIMS if claim.text.startswith(text)]
    return facts.count(claim, *facts.exact)


def group_attractors(scores: xr.Dataset) -> dict[str, list[str]]:
    """Return with how many attractors a model is better or worse than the most common label of these sentences.

    It is so if the intervals of all seeds are above or below that label; a group without attractors is left out.
    """
    groups: dict[str, list[str]] = {"better": [], "not shown to differ": [], "worse": []}
    for name in [str(name) for name in scores["attractors"].values if name != "all"]:
        group = scores.sel(attractors=name)
        better, worse = (group["accuracy_low"] > group["majority"]), (group["accuracy_high"] < group["majority"])
        groups["better" if better.all() else "worse" if worse.all() else "not shown to differ"].append(name)
    return {kind: names for kind, names in groups.items() if names}


def list_everywhere(facts: FlowFacts) -> list[str]:
    """Return the claims that hold for every pair to which they apply."""
    verdicts = {claim.text.rstrip("."): facts.verdicts(claim) for claim in facts.claims}
    return [text for text, kinds in verdicts.items() if kinds and set(kinds) <= set(facts.exact)]


def count_never(facts: FlowFacts) -> dict[str, int]:
    """Return how many of the claims that apply hold for no pair, and how many of these are undecided for some pair."""
    verdicts = [kinds for claim in facts.claims if (kinds := facts.verdicts(claim))]
    never = [kinds for kinds in verdicts if not set(kinds) & set(facts.exact)]
    return {"claims": len(verdicts), "never": len(never), "undecided": sum(UNDECIDED in kinds for kinds in never)}


def list_gains(data: xr.Dataset, lens: str, score: str) -> list[float]:
    """Return what a lens gains over raw attention in the last layer, over tasks on the verb's number and seeds."""
    tasks = [task for task in list_tasks(data) if task != paper.SST]
    gains = data["difference"].sel(task=tasks, subset="all", formula="exact")
    return [float(gain) for gain in gains.sel(contrast=f"correlation, {lens} − raw, {score}").values.ravel()]


def list_growth(facts: FlowFacts, lens: str) -> list[float]:
    """Return how much the correlation with blank-out changes from the first layer to the last, pair by pair."""
    values = [data["correlation"].sel(lens=lens, importance="blank-out") for data in facts.every_pair.values()]
    return [float(value.isel(layer=-1) - value.isel(layer=0)) for value in values]


def list_saturated(facts: FlowFacts) -> list[str]:
    """Return the models whose last map of flow is one ranking of input tokens on every task."""
    shares = {label: measure_saturation(data)["same_for_sources"] for label, data in facts.models.items()}
    return [label for label, share in shares.items() if float(share.min()) > SATURATED]


def count_formula(facts: FlowFacts) -> str:
    """Return how many verdicts on correlations would be others by the formula of the paper's code alone."""
    changed, total = 0, 0
    for judged in facts.every:
        for task in judged.tasks:
            if task.published:
                ours, theirs = (answer_seeds(judged.claim, lenses) for lenses in (task.intervals, task.published))
                changed, total = changed + (ours != theirs), total + 1
    return f"{changed} of {total}"


def list_changes_if_correct(facts: FlowFacts) -> dict[str, list[tuple[str, str, str]]]:
    """Return the verdicts that change if only inputs count that are predicted correctly, by model and task.

    Each is its claim, the verdict by all inputs, and that by those that are predicted correctly.
    """
    correct = {
        (label, claim.text, task.task): task.verdict
        for label, claims in facts.judge(facts.measured, "correct").items()
        for claim in claims
        for task in claim.tasks
    }
    changes: dict[str, list[tuple[str, str, str]]] = {}
    for claim in facts.claims:
        for (label, task), judged in facts.cells(claim).items():
            other = correct.get((label, claim.text, task), MOOT)
            if other != judged.verdict:
                row = (claim.text.rstrip("."), judged.verdict, other)
                changes.setdefault(f"{NAMES.get(label, label)}, {task}", []).append(row)
    return changes


def list_moves(facts: FlowFacts) -> dict[str, list[float]]:
    """Return how much the size of changes and the formula of the paper's code move the correlations, last layer."""
    moves: dict[str, list[float]] = {"size": [], "formula": []}
    for data in facts.every_pair.values():
        last = data.sel(lens=list(paper.SHOWN)).isel(layer=-1)
        size = last["correlation"].sel(importance="|blank-out|")
        moves["size"] += (size - last["correlation"].sel(importance="blank-out")).values.tolist()
        moves["formula"] += (last["code"].sel(importance="blank-out") - size).values.tolist()
    return moves


def count_holding(facts: FlowFacts, factor: float) -> int:
    """Return how many verdicts hold with all thresholds multiplied by a factor."""
    counts = count_scaled(facts.every, factor)
    return sum(counts[kind] for kind in facts.exact)


def list_training_sizes(facts: FlowFacts) -> list[int]:
    """Return from how many sentences the models for the verb's number learned; those tuned before do not say."""
    trained = [data["train"].sel(task=task) for data in facts.models.values() for task in list_tasks(data)]
    return [int(count) for count in trained if count["task"] != paper.SST and count > 0]
