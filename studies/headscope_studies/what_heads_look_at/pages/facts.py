"""The results of what heads look at, of all models: verdicts, and the numbers of the page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import HOLDS, MOOT, NOT_REPRODUCED, UNDECIDED, JudgedClaim, TaskVerdict
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.results.store import open_result
from headscope_studies.what_heads_look_at import probe_numbers, report, surface
from headscope_studies.what_heads_look_at.claims import NO_OP, judge_claims
from headscope_studies.what_heads_look_at.networks import PRETRAINED
from headscope_studies.what_heads_look_at.no_op import GROUPS

RESULTS = Path(__file__).parents[1] / "results"

STEM = "what_heads_look_at_"
FILES = ("no_op", "clusters", "gradients", "examples")
TREEBANKS = ("EWT", "GUM")
PROBES = ("dependency", "attention", "attention_and_words")
SHOWN = ("cls", "sep", "period_comma")
BESIDE_RAW = ("effective", "norm", "gradient", "attention × gradient")
"""Measures by which attention may be a no-op."""

TOPICS = {
    "surface": "surface and clusters",
    "no-op": "no-ops",
    "syntax": "single relations",
    "trees": "syntax as a whole",
    "coreference": "coreference",
}
"""Titles of what claims are on."""


@dataclass(frozen=True)
class HeadFacts:
    """The results of every model, and of every model and treebank."""

    surface: Mapping[str, xr.Dataset]
    no_op: Mapping[str, xr.Dataset]
    clusters: Mapping[str, xr.Dataset]
    probes: Mapping[str, xr.Dataset]  # by probe, along model and treebank
    coreference: Mapping[str, xr.Dataset]  # by model, along data
    gradients: Mapping[str, xr.Dataset] = field(default_factory=dict)  # sizes, of models that were tuned less
    examples: Mapping[str, xr.Dataset] = field(default_factory=dict)  # maps of single heads

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return list(self.surface)

    @cached_property
    def networks(self) -> dict[str, xr.Dataset]:
        """What tokens count in each model and those that were tuned from it, seeds combined."""
        return {label: combine_seeds(data) for label, data in self.no_op.items()}

    def trees(self, label: str, treebank: str, attention: str = "raw", seed: int = 0) -> dict[str, xr.Dataset]:
        """Return the results of the probes of syntax of one model on one treebank, with one kind of attention."""
        runs = {}
        for name, data in self.probes.items():
            where = {"model": label, "treebank": treebank, "attention": attention, "seed": seed}
            where = {axis: value for axis, value in where.items() if axis in data.dims}
            if any(value not in data[axis].values for axis, value in where.items()):
                continue
            run = data.sel(where, drop=True).dropna("relation", how="all", subset=["accuracy"])
            if run.sizes["relation"]:
                runs[name] = run
        return runs

    @property
    def treebanks(self) -> list[tuple[str, str]]:
        """The models and treebanks whose syntax was probed."""
        return [(label, bank) for label in self.models for bank in TREEBANKS if "dependency" in self.trees(label, bank)]

    @cached_property
    def judged_numbers(self) -> dict[str, dict[str, xr.Dataset]]:
        """What is judged by model, or by model and treebank, and part."""
        groups: dict[str, dict[str, xr.Dataset]] = {}
        for label in self.models:
            groups[label] = {"surface": self.surface[label]}
            groups[label] |= {"no-op": self.no_op[label]} if label in self.no_op else {}
            trees = []
            for treebank in [bank for name, bank in self.treebanks if name == label]:
                parts = self.trees(label, treebank)
                relations = probe_numbers.number_relations(parts["dependency"])
                groups[f"{label}, {treebank}"] = {"syntax": relations}
                trained = parts.get("attention"), parts.get("attention_and_words")
                trees.append(probe_numbers.number_trees(parts["dependency"], *trained, treebank))
            if trees:
                groups[label]["trees"] = xr.concat(trees, "task")
            if label in self.coreference:
                data = self.coreference[label]
                data = data.sel(lens="raw", drop=True) if "lens" in data.dims else data
                sets = {str(name): data.sel(data=name) for name in data["data"].values}
                groups[label]["coreference"] = probe_numbers.number_coreference(sets)
        return groups

    @cached_property
    def judged(self) -> dict[str, dict[str, list[JudgedClaim]]]:
        """All verdicts by model, or by model and treebank, and part; corrected for the number of all of them."""
        return judge_claims(self.judged_numbers)

    @property
    def every(self) -> list[JudgedClaim]:
        """All verdicts in one list."""
        return [claim for parts in self.judged.values() for claims in parts.values() for claim in claims]


@cache
def read_facts(folder: Path = RESULTS) -> HeadFacts:
    """Return the results of all models in a folder."""
    paths = sorted(folder.glob(f"{STEM}*.nc"))
    files: dict[str, dict[str, xr.Dataset]] = {name: {} for name in ("", *FILES)}
    for path in paths:
        label, _, name = path.stem.removeprefix(STEM).partition("_")
        files[name][label] = open_result(path)
    surfaces, clusters = files[""], files["clusters"]
    surfaces = {label: surface.add_claimed(data, clusters[label]) for label, data in surfaces.items()}
    probes = {name: open_result(folder / f"probes_{name}.nc") for name in PROBES}
    paths = sorted(folder.glob("coreference_*.nc"))
    coreference = {path.stem.removeprefix("coreference_"): open_result(path) for path in paths}
    more = {"gradients": files["gradients"], "examples": files["examples"]}
    return HeadFacts(surfaces, files["no_op"], clusters, probes, coreference, **more)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    kinds = {"numbers": facts.surface, "no_op": facts.no_op, "clusters": facts.clusters}
    results = {label: {name: by_model[label] for name, by_model in kinds.items()} for label in facts.models}
    return [(f"{STEM}{label}", report.document(data)) for label, data in results.items()]


def find_answer(facts: HeadFacts, label: str, network: str, group: str, measure: str) -> tuple[str, TaskVerdict]:
    """Return whether attention to a group is a no-op by a measure, from both verdicts, and that on the measure.

    "no-op": attended to more than an ordinary token, and counts less; "counts": counts more; "not attended to more":
    raw attention is not above that to an ordinary token; "undecided".
    """
    cells = {}
    for claim, judged in zip(NO_OP, facts.judged[label]["no-op"], strict=True):
        if claim.where["group"] == group:
            (cells[claim.where["measure"]],) = [task for task in judged.tasks if task.task == network]
    raw, other = cells["raw"], cells[measure]
    if raw.verdict != HOLDS or measure == "raw":
        names = {HOLDS: "attended to more", NOT_REPRODUCED: "not attended to more"}
        return names.get(raw.verdict, raw.verdict), other
    names = {HOLDS: "no-op", NOT_REPRODUCED: "counts", UNDECIDED: "undecided", MOOT: MOOT}
    return names[other.verdict], other


def answer_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return the headline: ratios and answers by model, network, group and measure."""
    rows = []
    for (label, network), group in product(list_networks(facts), SHOWN):
        ratio = facts.networks[label]["ratio"].sel(task=network, group=group)
        row = {"model": f"{label}, {network}", "token": GROUPS[group]}
        for measure in ("raw", *BESIDE_RAW):
            answer, verdict = find_answer(facts, label, network, group, measure)
            row[measure] = "–" if verdict.verdict == MOOT else f"{float(ratio.sel(measure=measure)):.2g} × {answer}"
        rows.append(row)
    return pd.DataFrame(rows).set_index(["model", "token"])


def list_networks(facts: HeadFacts) -> list[tuple[str, str]]:
    """Return the names of every model and of each of its networks: itself, and those that were tuned from it."""
    return [(label, network) for label, data in facts.networks.items() for network in list_tasks(data)]


def list_attending(facts: HeadFacts, group: str) -> list[tuple[str, str]]:
    """Return the networks in which a group is attended to more than an ordinary token."""
    return [pair for pair in list_networks(facts) if find_answer(facts, *pair, group, "raw")[0] == "attended to more"]


def count_answers(facts: HeadFacts, group: str, measure: str) -> Counter[str]:
    """Return how often attention to a group is a no-op, counts or is undecided by a measure, in attending networks."""
    answers = Counter(find_answer(facts, *pair, group, measure)[0] for pair in list_attending(facts, group))
    return Counter({answer: count for answer, count in answers.items() if answer != MOOT})


def split_measures(facts: HeadFacts) -> tuple[list[str], list[str]]:
    """Return the measures by which attention is a no-op wherever it is decided, and those by which it never is."""
    counts = {
        measure: sum((count_answers(facts, group, measure) for group in SHOWN), Counter[str]())
        for measure in BESIDE_RAW
    }
    always = [measure for measure, count in counts.items() if count["no-op"] and not count["counts"]]
    never = [measure for measure, count in counts.items() if count["counts"] and not count["no-op"]]
    return always, never


def find_equal_layers(facts: HeadFacts) -> dict[str, list[int]]:
    """Return the layers in which [CLS] and [SEP] have the same raw weight to 1 %, by model, where there are any."""
    layers = {}
    for label, data in facts.networks.items():
        raw = data["ratio_layer"].sel(task=PRETRAINED, measure="raw")
        same = np.abs(raw.sel(group="cls").values / raw.sel(group="sep").values - 1) < 0.01
        layers[label] = [int(layer) for layer in raw["layer"].values[same]]
    return {label: equal for label, equal in layers.items() if equal}


def count_layers(facts: HeadFacts, measure: str) -> tuple[int, Counter[str]]:
    """Return the number of layers that attend to [CLS] or [SEP] more than to an ordinary token, over all networks.

    And in how many of them the token counts less by a measure, by network; both by plain intervals.
    """
    attending, less = 0, Counter[str]()
    for label, network in list_networks(facts):
        ratio = facts.networks[label].sel(task=network, group=["cls", "sep"])
        measured = np.isfinite(ratio["ratio_layer"].sel(measure=measure))
        more = (ratio["ratio_layer_low"].sel(measure="raw") > 1) & measured
        attending += int(more.sum())
        less[f"{label}, {network}"] = int((more & (ratio["ratio_layer_high"].sel(measure=measure) < 1)).sum())
    return attending, less


def count_verdicts(facts: HeadFacts) -> dict[str, int]:
    """Return the number of verdicts of each kind that occurs."""
    verdicts = Counter(task.verdict for claim in facts.every for task in claim.tasks)
    return {kind: verdicts[kind] for kind in report.KINDS if verdicts[kind]}


def count_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return the number of each verdict by topic, all models together."""
    rows = {}
    for topic, title in TOPICS.items():
        claims = [claim for topics in facts.judged.values() for claim in topics.get(topic, ())]
        verdicts = Counter(task.verdict for claim in claims for task in claim.tasks)
        rows[title] = {kind: verdicts[kind] for kind in report.KINDS}
    return pd.DataFrame.from_dict(rows, "index").rename_axis("verdicts on")


def verdict_frame(facts: HeadFacts, topic: str) -> pd.DataFrame:
    """Return the verdicts on the claims on one topic, with their numbers, a column for each model and task.

    Each relation has a row in place of a column.
    """
    rows: dict[str, dict[str, str]] = {}
    for label, topics in facts.judged.items():
        for claim in topics.get(topic, ()):
            for task in claim.tasks:
                column = label if topic in ("surface", "syntax") else f"{label}, {task.task}"
                row = task.task if topic == "syntax" else claim.text.rstrip(".")
                rows.setdefault(row, {})[column] = f"{task.verdict}: {task.figures}"
    title = "relation" if topic == "syntax" else "claim"
    return pd.DataFrame.from_dict(rows, "index").rename_axis(title).fillna("–")


def list_looking(data: xr.Dataset) -> dict[str, list[str]]:
    """Return the heads with more than half of their raw attention on each target, and those that are broad."""
    raw = data.isel(task=0).sel(lens="raw")
    targets = ("previous", "next", "cls", "sep")
    looking = {name: surface.list_heads(raw["share"].sel(target=name), above=surface.HALF) for name in targets}
    return {**looking, "broad": surface.list_heads(raw["peak"], at_most=surface.BROAD)}


def count_special(data: xr.Dataset, targets: Sequence[str] = surface.SPECIAL) -> tuple[int, int]:
    """Return how many heads have more than half of their raw attention on special tokens, and of how many."""
    share = data.isel(task=0)["share"].sel(lens="raw", target=list(targets)).sum("target")
    return int((share > surface.HALF).sum()), share.size
