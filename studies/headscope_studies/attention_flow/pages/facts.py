"""What the results of the attention-flow study come to: numbers and sentences of its page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import xarray as xr

from headscope.core.document import Document
from headscope.core.prose import join_words
from headscope.experiments.claims import MOOT, UNDECIDED, JudgedClaim, answer_seeds
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import format_range
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope_studies.attention_flow import paper, report
from headscope_studies.attention_flow.claims import CLAIMS, OF, judge_models

RESULTS = Path(__file__).parents[1] / "results"

PAPER, AGREEMENT = "paper", "agreement"
PARTS = ("shown", "maps", "pronouns", "referents", "accuracy")
OWN = "the paper's architecture"
NAMES = {PAPER: "trained again"}
"""How models are called that are not called by their files."""


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
        return {f"{NAMES.get(label, label)}, {task}": data.sel(task=task, subset="all")
                for label, data in self.models.items() for task in list_tasks(data)}  # fmt: skip


@cache
def read_facts(folder: Path = RESULTS) -> FlowFacts:
    """Return the facts of all models in a folder of results, the paper's own first."""
    stem, ends = FlowFacts.stem, tuple(f"_{part}" for part in PARTS)
    paths = [path for path in sorted(folder.glob(f"{stem}*.nc")) if not path.stem.endswith(ends)]
    paths.sort(key=lambda path: (path.stem != f"{stem}{PAPER}", path.stem))
    labels = {path.stem.removeprefix(stem): path for path in paths}
    files = {
        label: {part: path.with_name(f"{path.stem}_{part}.nc") for part in PARTS} for label, path in labels.items()
    }
    more = {label: {part: open_result(file) for part, file in parts.items() if file.is_file()}
            for label, parts in files.items()}  # fmt: skip
    return FlowFacts({label: open_result(path) for label, path in labels.items()}, more)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


def count_true(facts: FlowFacts, text: str) -> str:
    """Return for how many pairs to which it applies the claim that begins so holds, such as 2 of 3."""
    (claim,) = [claim for claim in CLAIMS if claim.text.startswith(text)]
    return facts.count(claim, *facts.exact)


def describe_learned(facts: FlowFacts) -> str:
    """Return how well every model learned, that of the paper beside the paper's accuracy."""
    parts = []
    for label, data in facts.models.items():
        own = label == PAPER
        scores = {task: f"{_score(data, task)} (most common label {_score(data, task, 'majority')})"
                  for task in list_tasks(data)}  # fmt: skip
        theirs = f" where the paper says {_decimals(paper.ACCURACY)}," if own else ""
        listed = join_words(f"{score} on {task}{theirs if task == AGREEMENT else ''}" for task, score in scores.items())
        parts.append(f"{'It' if own else f'{label}, fine-tuned,'} reaches {listed}.{describe_attractors(facts, label)}")
    own_score = facts.models[PAPER]["score_high"].sel(lens="raw") if PAPER in facts.models else None
    if own_score is not None and AGREEMENT in own_score["task"] and own_score.sel(task=AGREEMENT) < paper.ACCURACY:
        parts.append(f"So what fails for {OWN} may fail because it learned less.")
    return " ".join(parts)


def describe_attractors(facts: FlowFacts, label: str) -> str:
    """Return with how many attractors a model is better than the most common label of these sentences, or worse."""
    scores = facts.more[label].get("accuracy")
    if scores is None:
        return ""
    groups: dict[str, list[str]] = {"better": [], "not shown to differ": [], "worse": []}
    for name in [str(name) for name in scores["attractors"].values if name != "all"]:
        part = scores.sel(attractors=name)
        better, worse = (part["accuracy_low"] > part["majority"]), (part["accuracy_high"] < part["majority"])
        groups["better" if better.all() else "worse" if worse.all() else "not shown to differ"].append(name)
    parts = join_words(f"{kind} with {join_words(names, 'or')}" for kind, names in groups.items() if names)
    return f" Compared with that label it is {parts} attractors, nouns of the other number before the verb."


def describe_everywhere(facts: FlowFacts) -> str:
    """Return which claims hold for every pair to which they apply."""
    verdicts = {claim.text.rstrip("."): facts.verdicts(claim) for claim in facts.claims}
    found = [f"“{text}”" for text, each in verdicts.items() if each and all(kind in facts.exact for kind in each)]
    if not found:
        return "No claim holds for every pair to which it applies."
    return f"Wherever {'it applies, this holds' if len(found) == 1 else 'they apply, these hold'}: {join_words(found)}."


def describe_nowhere(facts: FlowFacts) -> str:
    """Return how many claims hold for no pair to which they apply."""
    verdicts = [found for claim in facts.claims if (found := facts.verdicts(claim))]
    none = [found for found in verdicts if not any(verdict in facts.exact for verdict in found)]
    unclear = sum(UNDECIDED in found for found in none)
    return f"{len(none)} of {len(verdicts)} claims hold for no pair; {unclear} of these are undecided for some pair."


def describe_gains(facts: FlowFacts) -> str:
    """Return what rollout and flow gain over raw attention in the last layer, model by model, not on SST-2."""
    texts = []
    for label, data in facts.measured.items():
        tasks = [task for task in list_tasks(data) if task != paper.SST]
        parts = []
        for lens in paper.SHOWN[1:] if tasks else ():
            ranges = []
            for score in OF:
                gains = data["difference"].sel(task=tasks, subset="all", formula="exact",
                                               contrast=f"correlation, {lens} − raw, {score}")  # fmt: skip
                ranges.append(format_range(gains.values.ravel(), "+.2f", ""))
            parts.append(f"{lens} {' and '.join(ranges)}")
        texts += [f"with {_name(label)} {join_words(parts)}"] if parts else []
    return "; ".join(texts)


def _name(label: str) -> str:
    return OWN if label == PAPER else label


def describe_growth(facts: FlowFacts) -> str:
    """Return how much the correlations of rollout and flow with blank-out change from the first layer to the last."""
    changes = {}
    for lens in paper.SHOWN[1:]:
        values = [data["correlation"].sel(lens=lens, importance="blank-out") for data in facts.every_pair.values()]
        changes[lens] = [float(value.isel(layer=-1) - value.isel(layer=0)) for value in values]
    return join_words(f"that of {lens} by {format_range(each, '.2f', '')}" for lens, each in changes.items())


def describe_saturation(facts: FlowFacts) -> str:
    """Return how far flow is saturated in the last layer, model by model."""
    parts, one = [], []
    for label, data in facts.models.items():
        last = 100 * data[["at_bound", "same_for_sources"]].sel(subset="all", lens="flow").isel(layer=-1)
        bound, same = (format_range(last[name].values.tolist()) for name in last)
        parts.append(f"{bound} of all pairs are at the bound and {same} of tokens get the same from everywhere with "
                     f"{_name(label)}")  # fmt: skip
        one += [_name(label)] if float(last["same_for_sources"].min()) > 99 else []
    ranked = f" So with {join_words(one)} flow's last map is one ranking of input tokens, whose gain is the ranking's."
    return f"In the last layer {'; '.join(parts)}.{ranked if one else ''}"


def count_formula(facts: FlowFacts) -> str:
    """Return how many verdicts on correlations would be others by the formula of the paper's code alone."""
    changed, total = 0, 0
    for judged in facts.every:
        for task in judged.tasks:
            if task.published:
                ours, theirs = (answer_seeds(judged.claim, lenses) for lenses in (task.intervals, task.published))
                changed, total = changed + (ours != theirs), total + 1
    return f"{changed} of {total}"


def describe_correct(facts: FlowFacts) -> str:
    """Return which verdicts change if only inputs count that are predicted correctly."""
    correct = {(label, claim.text, task.task): task.verdict
               for label, claims in facts.judge(facts.measured, "correct").items()
               for claim in claims for task in claim.tasks}  # fmt: skip
    pairs: dict[str, list[str]] = {}
    for claim in facts.claims:
        for (label, task), verdict in facts.cells(claim).items():
            other = correct.get((label, claim.text, task), MOOT)
            if other != verdict.verdict:
                text = f"“{claim.text.rstrip('.')}” {verdict.verdict} → {other}"
                pairs.setdefault(f"{NAMES.get(label, label)}, {task}", []).append(text)
    changed = sum(map(len, pairs.values()))
    count = f"{changed} of {len(facts.claims) * facts.pairs} verdicts change"
    listed = "; ".join(f"{', '.join(texts)} ({pair})" for pair, texts in pairs.items())
    return f"{count}: {listed}" if pairs else count


def describe_sizes(facts: FlowFacts) -> str:
    """Return how much the size of changes and the formula of the paper's code move the correlations, last layer."""
    moves: dict[str, list[float]] = {"size": [], "formula": []}
    for data in facts.every_pair.values():
        last = data.sel(lens=list(paper.SHOWN)).isel(layer=-1)
        size = last["correlation"].sel(importance="|blank-out|")
        moves["size"] += (size - last["correlation"].sel(importance="blank-out")).values.tolist()
        moves["formula"] += (last["code"].sel(importance="blank-out") - size).values.tolist()
    size, formula = (format_range(values, "+.2f", "") for values in moves.values())
    return f"the size moves correlations in the last layer by {size}, the formula by another {formula}"


def describe_scaled(facts: FlowFacts) -> str:
    """Return how many claims hold with thresholds as they are, halved and doubled."""
    counts = {factor: count_scaled(facts.every, factor) for factor in (1.0, 0.5, 2.0)}
    held = [sum(counts[factor][kind] for kind in facts.exact) for factor in counts]
    return f"{held[1]} verdicts hold with all of them halved and {held[2]} with all doubled, instead of {held[0]}"


def find_training(facts: FlowFacts) -> str:
    """Return from how many sentences the models for the verb's number learned."""
    counts = {int(data["train"].sel(task=task)) for data in facts.models.values() for task in list_tasks(data)
              if task != paper.SST} - {0}  # fmt: skip
    return format_range(counts, ",.0f", "") if counts else "an unknown number of"


def _score(data: xr.Dataset, task: str, name: str = "score") -> str:
    return _decimals(float(data[name].sel(task=task, lens="raw")))


def _decimals(value: float) -> str:
    return f"{value:.2f}".lstrip("0")
