"""What the results of the attention-flow study come to: the numbers of its page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import MOOT, JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.summary import list_tasks
from headscope.results.store import open_result
from headscope_studies.attention_flow import paper, report
from headscope_studies.attention_flow.claims import CLAIMS, judge_models

RESULTS = Path(__file__).parents[1] / "results"

PAPER = "paper"
AGREEMENT = "agreement"
EXTRA_RESULTS = ("shown", "maps", "pronouns", "referents", "accuracy", "script", "appendix", "sentences")
NAMES = {PAPER: "trained again"}
"""How models are called in figures that are not called by their files."""

SCRIPT_END = ", their script"
"""How verdicts on what the authors' script measures are called, behind the model."""


@dataclass(frozen=True)
class FlowFacts(StudyFacts):
    """The numbers of every model, and the other results of each by their names."""

    more: Mapping[str, Mapping[str, xr.Dataset]]

    stem = "attention_flow_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset], subset: str = "all") -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, by all inputs or by those that are predicted correctly.

        What the authors' script measures is judged beside the models, where all their seeds are.
        """
        whole = all(data.sizes == self.measured[label].sizes for label, data in measured.items())
        scripts = {f"{label}{SCRIPT_END}": data for label, data in self.scripts.items()} if whole else {}
        return judge_models({**measured, **scripts}, subset)

    @property
    def scripts(self) -> dict[str, xr.Dataset]:
        """What the authors' script for SST-2 measures, by model."""
        return {label: results["script"] for label, results in self.more.items() if "script" in results}

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


def list_gains(data: xr.Dataset, lens: str, score: str) -> list[float]:
    """Return what a lens gains over raw attention in the last layer, over tasks on the verb's number and seeds."""
    tasks = [task for task in list_tasks(data) if task != paper.SST]
    gains = data["difference"].sel(task=tasks, subset="all")
    return [float(gain) for gain in gains.sel(contrast=f"correlation, {lens} − raw, {score}").values.ravel()]


def list_tuned_scores(facts: FlowFacts) -> dict[str, float]:
    """Return the accuracy of other models on the sentences that the paper's architecture is tested on."""
    others = {label: data["score"] for label, data in facts.models.items() if label != PAPER}
    return {
        label: float(score.sel(task=AGREEMENT, lens="raw"))
        for label, score in others.items()
        if AGREEMENT in score["task"].values
    }


def count_inputs_by_task(facts: FlowFacts) -> list[tuple[str, str]]:
    """Return the number of inputs of each task; all models have the same."""
    counts = {task: int(data["n"].sel(task=task)) for data in facts.models.values() for task in list_tasks(data)}
    return [(f"{count:,}", task) for task, count in counts.items()]


def list_changes_if_correct(facts: FlowFacts) -> dict[str, list[tuple[str, str, str]]]:
    """Return the verdicts that change if only inputs count that are predicted correctly, by model and task.

    Each is its claim, the verdict by all inputs, and that by those that are predicted correctly.
    """
    correct = {
        (label, claim.text, task.task): task.verdict
        for label, claims in facts.judge(facts.measured, "correct").items()
        for claim in claims
        for task in claim.tasks
        if label in facts.models
    }
    changes: dict[str, list[tuple[str, str, str]]] = {}
    for claim in facts.claims:
        for (label, task), judged in facts.cells(claim).items():
            other = correct.get((label, claim.text, task), MOOT)
            if other != judged.verdict:
                row = (claim.text.rstrip("."), judged.verdict, other)
                changes.setdefault(f"{NAMES.get(label, label)}, {task}", []).append(row)
    return changes


def list_moves(facts: FlowFacts) -> list[float]:
    """Return how much correlations with blank-out move in the last layer if the size of a change counts."""
    moves: list[float] = []
    for data in facts.every_pair.values():
        last = data["correlation"].sel(lens=list(paper.SHOWN)).isel(layer=-1)
        moves += (last.sel(importance="|blank-out|") - last.sel(importance="blank-out")).values.tolist()
    return moves


def list_steps(facts: FlowFacts, lens: str, step: str) -> list[float]:
    """Return the correlation in the last layer after a step towards the authors' script, seed by seed."""
    tables = [data["step_correlation"].sel(subset="all", step=step, lens=lens) for data in facts.scripts.values()]
    return [float(value) for table in tables for value in table.isel(layer=-1).values.ravel()]


def list_script_gains(facts: FlowFacts, lens: str) -> list[float]:
    """Return what a lens gains over raw attention in the last layer by the authors' script, seed by seed."""
    name = f"correlation, {lens} − raw, gradient"
    gains = [data["difference"].sel(subset="all", contrast=name) for data in facts.scripts.values()]
    return [float(value) for gain in gains for value in gain.values.ravel()]


def measure_attractors(scores: xr.Dataset) -> float:
    """Return the share of test sentences that have an attractor, in percent."""
    counts = scores["n"].isel(seed=0)
    return 100 * float(1 - counts.sel(attractors="0") / counts.sel(attractors="all"))


def list_training_sizes(facts: FlowFacts) -> list[int]:
    """Return from how many sentences the models for the verb's number learned; those tuned before do not say."""
    trained = [data["train"].sel(task=task) for data in facts.models.values() for task in list_tasks(data)]
    return [int(count) for count in trained if count["task"] != paper.SST and count > 0]
