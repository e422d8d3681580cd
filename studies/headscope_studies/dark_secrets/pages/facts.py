"""What the results of the study dark-secrets come to: numbers and sentences of its page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.pages.facts import StudyFacts, count_kinds, describe_holding
from headscope.experiments.relation_heads import find_best_head
from headscope.experiments.rendering.sentences import conjugate
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import format_range
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope_studies.dark_secrets import report
from headscope_studies.dark_secrets.claims import CLAIMS, judge_models, name_relations
from headscope_studies.dark_secrets.disabled import count_significant
from headscope_studies.dark_secrets.paper import SST_FROM_RANDOM
from headscope_studies.dark_secrets.starts import PRETRAINED, RANDOM, TUNED

RESULTS = Path(__file__).parents[1] / "results"

PARTS = ("relations", "shown_relation")
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
        return {label: parts["relations"] for label, parts in self.more.items() if "relations" in parts}

    @property
    def each(self) -> list[tuple[str, str, xr.Dataset]]:
        """The numbers of each pair of a model and a task, with their names."""
        return [(label, task, data.sel(task=task)) for label, data in self.models.items() for task in list_tasks(data)]


@cache
def read_facts(folder: Path = RESULTS) -> DarkFacts:
    """Return the facts of all models in a folder of results."""
    stem, ends = DarkFacts.stem, tuple(f"_{part}" for part in PARTS)
    paths = sorted(folder.glob(f"{stem}*.nc"), key=lambda path: path.stem)
    labels = {path.stem.removeprefix(stem): path for path in paths if not path.stem.endswith(ends)}
    files = {
        label: {part: path.with_name(f"{path.stem}_{part}.nc") for part in PARTS} for label, path in labels.items()
    }
    more = {label: {part: open_result(file) for part, file in parts.items() if file.is_file()}
            for label, parts in files.items()}  # fmt: skip
    return DarkFacts({label: open_result(path) for label, path in labels.items()}, more)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


def describe_counts(facts: DarkFacts) -> str:
    """Return how many verdicts on tasks, and how many on relations, are of which kind."""
    parts = []
    for judged, what in (
        ([claim for claims in facts.judged.values() for claim in claims], "pairs of a model and a task"),
        ([claim for claims in facts.others.values() for claim in claims], "relations of a model"),
    ):
        counts = count_kinds(judged)
        listed = join_words(f"{counts[kind]} {conjugate(kind, counts[kind])}" for kind in facts.kinds if counts[kind])
        claims = len({claim.text for claim in judged})
        pairs = sum(counts.values()) // max(claims, 1)
        parts += [f"{sum(counts.values())} verdicts on {claims} claims for {pairs} {what}: {listed}"] if judged else []
    return f"{'; '.join(parts)}."


def describe_claims(facts: DarkFacts) -> str:
    """Return which claims hold for most pairs, and how many hold for none."""
    counts = {claim.text: sum(verdict in facts.exact for verdict in facts.verdicts(claim)) for claim in CLAIMS}
    nowhere = [text for text, count in counts.items() if not count]
    also = f" {len(nowhere)} of {len(CLAIMS)} claims hold for no pair." if nowhere else ""
    return describe_holding(facts) + also


def describe_unlearned(facts: DarkFacts) -> str:
    """Return which tuned models are not shown to be better than the most common label, or nothing."""
    parts = []
    for label, task, data in facts.each:
        low, majority = float(data["score_low"].sel(lens="raw")), float(data["majority"])
        if low <= majority:
            score = float(data["score"].sel(lens="raw"))
            parts.append(f"{label} on {task} ({score:.2f} against {majority:.2f})")
    if not parts:
        return ""
    return (
        f"Not shown to be better than the most common label, so that it may say little of heads: {join_words(parts)}."
    )


def describe_shares(facts: DarkFacts) -> str:
    """Return the range of shares of heterogeneous and of vertical maps, model by model."""
    parts = []
    for label, data in facts.models.items():
        share = 100 * data["share"].sel(lens="raw")
        ranges = [format_range(share.sel(pattern=name).values.tolist()) for name in ("heterogeneous", "vertical")]
        parts.append(f"with {label} {ranges[0]} are heterogeneous and {ranges[1]} vertical")
    return join_words(parts)


def describe_disabled(facts: DarkFacts) -> str:
    """Return how many heads can be disabled without a lower score, the mean change, and the best gains."""
    parts = []
    for label, data in facts.models.items():
        change, measured = data["head_change"], facts.measured[label]
        spared = [100 * float((change.sel(task=task) >= 0).mean()) for task in list_tasks(data)]
        mean = format_range(100 * data["mean_head_change"].values, "+.2f", "")
        sizes = abs(measured["head_change"]).transpose("task", ...).values
        size = format_range(100 * sizes.reshape(len(sizes), -1).mean(-1), ".2f", "")
        best = {kind: format_range(100 * data[f"best_{kind}_change"].values, "+.1f", "") for kind in ("head", "layer")}
        counts = [count_significant(measured.sel(task=task)) for task in list_tasks(data)]
        losses, gains = (sum(count[at] for count in counts) for at in (0, 1))
        parts.append(
            f"With {label} the score is not lower without {format_range(spared)} of the heads, one at a time, and "
            f"changes by {mean} points on average, signs included, and by {size} in size; of "
            f"{change.size} changes {losses} losses and {gains} gains are "
            f"significant{' with every seed' if 'seed' in measured.dims else ''}. The best head to disable changes the "
            f"score by {best['head']} points, the best layer by {best['layer']}."
        )
    return " ".join(parts)


def describe_starts(facts: DarkFacts) -> str:
    """Return what pretraining gains, and what the model learns from random weights."""
    gains = {label: format_range(100 * data["pretraining_gain_change"].values, "+.0f", "")
             for label, data in facts.models.items()}  # fmt: skip
    text = f"Pretraining gains {join_words(f'{gain} points with {label}' for label, gain in gains.items())}. "
    sentiment = [float(data["start_score"].sel(task="SST-2", start=RANDOM)) for data in facts.models.values()
                 if "SST-2" in list_tasks(data)]  # fmt: skip
    if sentiment:
        text += (
            f"From random weights SST-2 is learned to {format_range(sentiment, '.2f', '')}, where the paper says "
            f"{SST_FROM_RANDOM:.2f}. "
        )
    scores = [data["start_score"] for data in facts.models.values()]
    gains_by_tuning = np.concatenate([(each.sel(start=TUNED) - each.sel(start=PRETRAINED)).values for each in scores])
    over = format_range(100 * gains_by_tuning, "+.0f", "")
    return f"{text}Over the pretrained model with an untrained head, fine-tuning gains {over} points."


def describe_relations(facts: DarkFacts) -> str:
    """Return how many relations have a head that encodes them, how many heads those are, and which lead."""
    parts = []
    for label, data in facts.relations.items():
        first, few = facts.judged_all[name_relations(label)]
        holds = [task.task for task in first.tasks if task.verdict in facts.exact]
        order = np.argsort(-data["best_gain_change"].values)[:3]
        best = []
        for name in data["task"].values[order]:
            layer, head = find_best_head(data.sel(task=name))
            gain = float(data["best_gain_change"].sel(task=name))
            best.append(f"{name} (L{layer}H{head}, +{gain:.2f})")
        share = format_range(100 * data["encoding"].values)
        n = int(read_provenance(data)["n"])
        parts.append(
            f"With {label}, on {n:,} sentences, {len(holds)} of {len(first.tasks)} relations have a head that attends "
            f"to them beyond their distance, most of all {join_words(best)}; {share} of all heads do so for one "
            f"relation, few of them for {sum(task.verdict in facts.exact for task in few.tasks)} relations, of which "
            f"{int((data['encoding'] == 0).sum())} have none."
        )
    return " ".join(parts)


def describe_scaled(facts: DarkFacts) -> str:
    """Return how many claims hold with thresholds as they are, halved and doubled."""
    counts = {factor: count_scaled(facts.every, factor) for factor in (1.0, 0.5, 2.0)}
    held = [sum(counts[factor][kind] for kind in facts.exact) for factor in counts]
    return f"{held[1]} verdicts hold with all of them halved and {held[2]} with all doubled, instead of {held[0]}"


def name_model(facts: DarkFacts, label: str) -> str:
    """Return the name of the model that a label stands for."""
    return str(read_provenance(facts.measured[label])["model"]) if label not in list_names(facts) else label


def list_names(facts: DarkFacts) -> list[str]:
    """Return the labels that are names of models; the others are models on tasks of which a seed was not run."""
    return [label for label, data in facts.measured.items() if not read_provenance(data).get("not_run")]


def describe_fewer(facts: DarkFacts) -> str:
    """Return which labels stand for a model on tasks with fewer seeds; nothing where all have the same."""
    parts = []
    for label, data in facts.measured.items():
        about = read_provenance(data)
        if seeds := about.get("not_run"):
            tasks = join_words(list_tasks(data))
            parts.append(
                f"{label} is {about['model']} on {tasks}, where seed {join_words(map(str, seeds))} was not run."
            )
    return " ".join(parts)


def describe_reduced(facts: DarkFacts) -> str:
    """Return which dev sets were not studied as a whole; nothing where all were."""
    sizes = {task: (int(data["n"]), int(data["whole_dev"])) for _, task, data in facts.each}
    parts = [f"{n:,} of {whole:,} inputs of {task}" for task, (n, whole) in sizes.items() if n < whole]
    return f"**Reduced**: {join_words(parts)} were studied." if parts else ""


def describe_noise(facts: DarkFacts) -> str:
    """Return that the thresholds on gains were reasoned for more inputs than there are, where that is so."""
    sizes = sorted({int(data["n"]) for _, _, data in facts.each if int(data["n"]) < REASONED})
    if not sizes:
        return ""
    noise = format_range([200 * (2 * 0.21 / n) ** 0.5 for n in sizes], ".1f", "")
    counts = f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else f"{sizes[0]:,}"
    return (
        f"Those on gains by pretraining were reasoned for {REASONED} inputs; with {counts} two standard errors of a "
        f"difference are {noise} points, and of a correlation others."
    )


def describe_margins(facts: DarkFacts) -> str:
    """Return how wide the interval of the change without one head is, task by task."""
    margins: dict[str, list[float]] = {}
    for _, task, data in facts.each:
        wide = (data["head_change_high"] - data["head_change_low"]) / 2
        margins.setdefault(task, []).append(100 * float(wide.median()))
    return join_words(f"±{format_range(values, '.1f', '')} points on {task}" for task, values in margins.items())
