"""What the results of the attention-flow study come to: numbers and sentences of its page."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import xarray as xr
from study_facts import RESULTS, StudyFacts, count_changes, format_number, format_range  # beside this file

from headscope.core.prose import join_words
from headscope.experiments.answers import combine
from headscope.experiments.claims import UNDECIDED, JudgedClaim, answer
from headscope.experiments.summary import list_tasks
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope.studies.attention_flow import paper
from headscope.studies.attention_flow.claims import CLAIMS, is_sst, judge_models
from headscope.studies.attention_flow.measure import GRAPHS

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
    return FlowFacts({label: split_seeds(open_result(path)) for label, path in labels.items()}, more)


def split_seeds(numbers: xr.Dataset) -> xr.Dataset:
    """Return numbers of tasks that are named after their seeds along `task` and `seed`."""
    names = [str(task).rpartition(" seed ") for task in numbers["task"].values]
    if not all(part[1] for part in names):
        return numbers
    tasks = list(dict.fromkeys(name for name, _, _ in names))
    counts = {name: numbers[name].astype(float) for name in ("count", "missing", "group_count") if name in numbers}
    numbers = numbers.assign(counts)
    parts = []
    for task in tasks:
        seeds = [at for at, (name, _, _) in enumerate(names) if name == task]
        part = numbers.isel(task=seeds).rename(task="seed").assign_coords(seed=[int(names[at][2]) for at in seeds])
        parts.append(part.expand_dims(task=[task]))
    return xr.concat(parts, "task", data_vars="all", combine_attrs="override").transpose("task", "seed", ...)


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


def describe_last(facts: FlowFacts, score: str) -> str:
    """Return the correlations with one kind of importance in the last layer, ours by pair."""
    parts = [f"{', '.join(_last(data, score, lens) for lens in paper.SHOWN)} ({name})"
             for name, data in facts.every_pair.items()]  # fmt: skip
    return "; ".join(parts)


def describe_growth(facts: FlowFacts) -> str:
    """Return how much the correlations of rollout and flow with blank-out change from the first layer to the last."""
    changes = {}
    for lens in paper.SHOWN[1:]:
        values = [data["correlation"].sel(lens=lens, importance="blank-out") for data in facts.every_pair.values()]
        changes[lens] = [float(value.isel(layer=-1) - value.isel(layer=0)) for value in values]
    return join_words(f"that of {lens} by {format_range(each, '.2f', '')}" for lens, each in changes.items())


def describe_saturation(facts: FlowFacts) -> str:
    """Return how far flow is saturated in the last layer, model by model."""
    parts = []
    for label, data in facts.models.items():
        last = 100 * data[["at_bound", "same_for_sources"]].sel(subset="all", lens="flow").isel(layer=-1)
        bound, same = (format_range(last[name].values.tolist()) for name in last)
        parts.append(f"{bound} of pairs are at the bound and {same} of tokens get the same from everywhere with "
                     f"{OWN if label == PAPER else label}")  # fmt: skip
    return f"In the last layer {'; '.join(parts)}."


def count_formula(facts: FlowFacts) -> str:
    """Return how many verdicts on correlations would be others by the formula of the paper's code alone."""
    changed, total = 0, 0
    for judged in facts.every:
        for task in judged.tasks:
            if task.published:
                ours, theirs = (combine([answer(judged.claim, interval) for interval in group])
                                for group in (task.intervals, task.published))  # fmt: skip
                changed, total = changed + (ours != theirs), total + 1
    return f"{changed} of {total}"


def count_correct(facts: FlowFacts) -> str:
    """Return how many verdicts change if only inputs count that are predicted correctly."""
    changed = count_changes(facts.judged, facts.judge(facts.measured, "correct"))
    return f"{changed} of {len(facts.claims) * facts.pairs}"


def describe_graphs(facts: FlowFacts) -> str:
    """Return which weights and graphs correlate best with blank-out in the last layer, and for how many pairs."""
    lenses = [lens for labels in GRAPHS.values() for lens in labels if not lens.startswith("gradient")]
    best: Counter[str] = Counter()
    for data in facts.every_pair.values():
        last = data["correlation"].sel(importance="blank-out", lens=lenses).isel(layer=-1)
        best[str(last["lens"].values[int(np.nanargmax(last.values))])] += 1
    return join_words(f"{lens} for {count} of {facts.pairs} pairs" for lens, count in best.most_common())


def describe_scaled(facts: FlowFacts) -> str:
    """Return how many claims hold with thresholds as they are, halved and doubled."""
    counts = {factor: count_scaled(facts.every, factor) for factor in (1.0, 0.5, 2.0)}
    held = [sum(counts[factor][kind] for kind in facts.exact) for factor in counts]
    return f"{held[1]} verdicts hold with all of them halved and {held[2]} with all doubled, instead of {held[0]}"


def describe_referents(facts: FlowFacts) -> str:
    """Return how often a masked pronoun gives its referent more weight than the other name, in the last layer."""
    texts = []
    for label, more in facts.more.items():
        if "referents" in more:
            last = more["referents"].isel(layer=-1)
            parts = [_count_referents(last.sel(set=name), str(name)) for name in last["set"].values]
            texts.append(
                f"With {label} a masked pronoun gives its referent more weight than the other name, by "
                f"{join_words(paper.SHOWN)}, in {join_words(parts)}."
            )
    return " ".join(texts) or "No masked language model was studied."


def _count_referents(part: xr.Dataset, name: str) -> str:
    shares = join_words(f"{100 * float(part['referent'].sel(lens=lens)):.0f} %" for lens in paper.SHOWN)
    above = [lens for lens in paper.SHOWN if float(part["referent_low"].sel(lens=lens)) > 0.5]
    return f"{shares} of {int(part['n']):,} texts of {name} (more than chance: {join_words(above)})"


def find_training(facts: FlowFacts) -> str:
    """Return from how many sentences the models for the verb's number learned."""
    counts = {int(data["train"].sel(task=task)) for data in facts.models.values() for task in list_tasks(data)
              if not is_sst(task)} - {0}  # fmt: skip
    return format_range(counts, ",.0f", "") if counts else "an unknown number of"


def _score(data: xr.Dataset, task: str, name: str = "score") -> str:
    return _decimals(float(data[name].sel(task=task, lens="raw")))


def _decimals(value: float) -> str:
    return f"{value:.2f}".lstrip("0")


def _last(data: xr.Dataset, score: str, lens: str) -> str:
    return format_number(float(data["correlation"].sel(lens=lens, importance=score).isel(layer=-1)), ".2f")
