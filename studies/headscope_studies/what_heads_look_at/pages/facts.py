"""The results of what heads look at, of all models: verdicts, and what they say in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Document
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import HOLDS, MOOT, NOT_REPRODUCED, UNDECIDED, JudgedClaim, TaskVerdict
from headscope.experiments.rendering.sentences import conjugate
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.results.store import open_result
from headscope_studies.what_heads_look_at import probe_numbers, report, surface
from headscope_studies.what_heads_look_at.claims import NO_OP, judge_claims
from headscope_studies.what_heads_look_at.networks import PRETRAINED, describe_quality
from headscope_studies.what_heads_look_at.no_op import GROUPS, begin_sentence

RESULTS = Path(__file__).parents[1] / "results"

STEM = "what_heads_look_at_"
TREEBANKS = ("EWT", "GUM")
PROBES = ("dependency", "attention", "attention_and_words")
SHOWN = ("cls", "sep", "period_comma")
KINDS = (HOLDS, NOT_REPRODUCED, UNDECIDED, MOOT)
PARTS = {"surface": "surface and clusters", "no-op": "no-ops", "syntax": "single relations",
         "trees": "syntax as a whole", "coreference": "coreference"}  # fmt: skip


@dataclass(frozen=True)
class HeadFacts:
    """The parts of every model, and of every model and treebank; no model without results."""

    surface: Mapping[str, xr.Dataset]
    no_op: Mapping[str, xr.Dataset]
    clusters: Mapping[str, xr.Dataset]
    probes: Mapping[str, xr.Dataset]  # by probe, along model and treebank
    coreference: Mapping[str, xr.Dataset]  # by model, along data

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
        parts = {}
        for name, data in self.probes.items():
            where = {"model": label, "treebank": treebank, "attention": attention, "seed": seed}
            where = {axis: value for axis, value in where.items() if axis in data.dims}
            if any(value not in data[axis].values for axis, value in where.items()):
                continue
            part = data.sel(where, drop=True).dropna("relation", how="all", subset=["accuracy"])
            if part.sizes["relation"]:
                parts[name] = part
        return parts

    @property
    def treebanks(self) -> list[tuple[str, str]]:
        """The models and treebanks whose syntax was probed."""
        return [(label, bank) for label in self.models for bank in TREEBANKS if "dependency" in self.trees(label, bank)]

    @cached_property
    def judged(self) -> dict[str, dict[str, list[JudgedClaim]]]:
        """All verdicts by model, or by model and treebank, and part; corrected for the number of all of them."""
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
        return judge_claims(groups)

    @property
    def every(self) -> list[JudgedClaim]:
        """All verdicts in one list."""
        return [claim for parts in self.judged.values() for claims in parts.values() for claim in claims]


@cache
def read_facts(folder: Path = RESULTS) -> HeadFacts:
    """Read the result files of a folder; without them there are no models."""
    paths = sorted(folder.glob(f"{STEM}*.nc"))
    parts: dict[str, dict[str, xr.Dataset]] = {"": {}, "no_op": {}, "clusters": {}}
    for path in paths:
        label = path.stem.removeprefix(STEM)
        part = next((name for name in ("no_op", "clusters") if label.endswith(f"_{name}")), "")
        parts[part][label.removesuffix(f"_{part}") if part else label] = open_result(path)
    for label, clusters in parts["clusters"].items():
        parts[""][label] = surface.add_layer_test(parts[""][label], clusters)
    probes = {name: folder / f"probes_{name}.nc" for name in PROBES}
    known = {name: open_result(path) for name, path in probes.items() if path.is_file()}
    coreference = {path.stem.removeprefix("coreference_"): open_result(path)
                   for path in sorted(folder.glob("coreference_*.nc"))}  # fmt: skip
    return HeadFacts(parts[""], parts["no_op"], parts["clusters"], known if parts[""] else {}, coreference)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    kinds = {"numbers": facts.surface, "no_op": facts.no_op, "clusters": facts.clusters}
    results = {label: {name: by_model[label] for name, by_model in kinds.items() if label in by_model}
               for label in facts.models}  # fmt: skip
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
    for label, networks in facts.networks.items():
        for network in list_tasks(networks):
            for group in SHOWN:
                row = {"model": f"{label}, {network}", "token": GROUPS[group]}
                for measure in map(str, networks["measure"].values):
                    answer, verdict = find_answer(facts, label, network, group, measure)
                    value = float(networks["ratio"].sel(task=network, group=group, measure=measure))
                    row[measure] = "–" if verdict.verdict == MOOT else f"{value:.2g} × {answer}"
                rows.append(row)
    return pd.DataFrame(rows).set_index(["model", "token"])


def describe_answer(facts: HeadFacts) -> str:
    """Return the answer in one paragraph: for each group by which measures attention to it is a no-op, and where not.

    Counted over models and networks in which the group is attended to more than an ordinary token.
    """
    sentences = []
    for group in SHOWN:
        pairs = [(label, network) for label, data in facts.networks.items() for network in list_tasks(data)]
        attended = [pair for pair in pairs if find_answer(facts, *pair, group, "raw")[0] == "attended to more"]
        parts = []
        for measure in ("effective", "norm", "gradient", "attention × gradient"):
            answers = [find_answer(facts, *pair, group, measure)[0] for pair in attended]
            known = [answer for answer in answers if answer != MOOT]
            if known:
                open_ones = known.count(UNDECIDED)
                parts.append(f"{known.count('no-op')} of {len(known)} by {measure}"
                             + (f" ({open_ones} undecided)" if open_ones else ""))  # fmt: skip
        subject = begin_sentence(group, "is attended to", "are attended to")
        text = f"{subject} more than an ordinary token in {len(attended)} of {len(pairs)} networks"
        sentences.append(f"{text}, and a no-op in {join_words(parts)}." if parts else f"{text}.")
    return " ".join(sentences)


def is_no_op_by_all(facts: HeadFacts) -> str:
    """Return the plain answer: by every measure, by some, or by none."""
    by: dict[str, set[str]] = {}
    for label, data in facts.networks.items():
        for network in list_tasks(data):
            for group in SHOWN:
                for measure in ("effective", "norm", "gradient", "attention × gradient"):
                    by.setdefault(measure, set()).add(find_answer(facts, label, network, group, measure)[0])
    always = [name for name, answers in by.items() if "no-op" in answers and "counts" not in answers]
    some = [name for name, answers in by.items() if {"no-op", "counts"} <= answers]
    never = [name for name, answers in by.items() if "no-op" not in answers and "counts" in answers]
    parts = [
        f"by {join_words(always)} where it is decided" if always else "",
        f"by {join_words(some)} for some tokens and networks, and not for others" if some else "",
        f"never by {join_words(never)}, where it is decided" if never else "",
    ]
    return "; ".join(part for part in parts if part)


def describe_equal(facts: HeadFacts) -> str:
    """Return the layers in which [CLS] and [SEP] have the same raw weight to 1 %, in the models themselves."""
    sentences = []
    for label, data in facts.networks.items():
        raw = data["ratio_layer"].sel(task=PRETRAINED, measure="raw")
        same = np.abs(raw.sel(group="cls") / raw.sel(group="sep") - 1).values < 0.01
        layers = [str(layer) for layer, equal in zip(raw["layer"].values, same, strict=True) if equal]
        if layers:
            where = "layer" if len(layers) == 1 else "layers"
            sentences.append(f"In {label}, one [CLS] and one [SEP] have the same weight, to 1 %, in the {where} "
                             f"{join_words(layers)}, so that their answers are not independent.")  # fmt: skip
    return " ".join(sentences)


def describe_layers(facts: HeadFacts) -> str:
    """Return in how many single layers the answer is another one, by plain intervals; the headline is a mean of layers.

    Counted are layers that attend to [CLS] or [SEP] more than to an ordinary token, in all networks.
    """
    parts = []
    for measure in ("effective", "norm", "attention × gradient"):
        attended, less = 0, {}
        for label, data in facts.networks.items():
            for network in list_tasks(data):
                ratio = data.sel(task=network, group=["cls", "sep"])
                known = np.isfinite(ratio["ratio_layer"].sel(measure=measure))
                more = (ratio["ratio_layer_low"].sel(measure="raw") > 1) & known
                attended += int(more.sum())
                counts = int((more & (ratio["ratio_layer_high"].sel(measure=measure) < 1)).sum())
                less |= {f"{label}, {network}": counts} if counts else {}
        most = f" ({max(less.values())} in {max(less, key=lambda name: less[name])})" if less else ""
        parts.append(f"{sum(less.values())} of {attended} by {measure}{most}")
    return ("In single layers that attend more to [CLS] or [SEP], the token counts less than an ordinary one in "
            f"{join_words(parts)}, by plain 95 % intervals.")  # fmt: skip


def describe_claims(facts: HeadFacts) -> str:
    """Return how many verdicts are of which kind."""
    verdicts = [task.verdict for claim in facts.every for task in claim.tasks]
    counts = join_words(
        f"{verdicts.count(kind)} {conjugate(kind, verdicts.count(kind))}" for kind in KINDS if verdicts.count(kind)
    )
    return f"Of {len(verdicts)} verdicts: {counts}."


def count_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return the number of each verdict by part, all models together."""
    rows = {}
    for part, title in PARTS.items():
        verdicts = [task.verdict for parts in facts.judged.values() for claim in parts.get(part, ())
                    for task in claim.tasks]  # fmt: skip
        if verdicts:
            rows[title] = {kind: verdicts.count(kind) for kind in KINDS}
    return pd.DataFrame.from_dict(rows, "index").rename_axis("verdicts on")


def verdict_frame(facts: HeadFacts, part: str) -> pd.DataFrame:
    """Return the verdicts on the claims of one part, with their numbers, a column for each model and task.

    Each relation has a row in place of a column.
    """
    rows: dict[str, dict[str, str]] = {}
    for label, parts in facts.judged.items():
        for claim in parts.get(part, ()):
            for task in claim.tasks:
                column = label if part in ("surface", "syntax") else f"{label}, {task.task}"
                row = task.task if part == "syntax" else claim.text.rstrip(".")
                rows.setdefault(row, {})[column] = f"{task.verdict}: {task.figures}"
    title = "relation" if part == "syntax" else "claim"
    return pd.DataFrame.from_dict(rows, "index").rename_axis(title).fillna("–")


def describe_heads(facts: HeadFacts) -> str:
    """Return how many heads look at their neighbours and how many are broad, for each model."""
    sentences = []
    for label, data in facts.surface.items():
        share, peak = data["share"].isel(task=0).sel(lens="raw"), data["peak"].isel(task=0).sel(lens="raw")
        count = share.sizes["layer"] * share.sizes["head"]
        names = {target: surface.list_heads(share.sel(target=target), above=surface.HALF)
                 for target in ("previous", "next", "cls", "sep")}  # fmt: skip
        broad = surface.list_heads(peak, at_most=surface.BROAD)
        sentences.append(
            f"{label}: of {count} heads, more than half of the weight goes to the previous token in "
            f"{surface.describe_heads(names['previous'], 4)}, to the next in "
            f"{surface.describe_heads(names['next'], 4)}, "
            f"to [CLS] in {len(names['cls'])}, to [SEP] in {len(names['sep'])}; {len(broad)} are broad."
        )
    return " ".join(sentences)


def describe_tuned(facts: HeadFacts) -> str:
    """Return on how many inputs tokens are compared, which models were tuned, how and with how many seeds."""
    sentences = []
    for label, data in facts.networks.items():
        n = int(data["n"].sel(task=PRETRAINED))
        names = list_tasks(data)[1:]
        if not names:
            sentences.append(f"{label} was not tuned: its tokens are compared on {n:,} inputs, without a loss.")
            continue
        tuning = read_provenance(facts.no_op[label])["tuning"]
        seeds = count_noun(facts.no_op[label].sizes.get("seed", 1), "seed")
        parts = [f"a {name} ({tuning[name]}; {describe_quality(row)} on {int(row['n']):,} inputs)"
                 for name in names for row in [data.sel(task=name)]]  # fmt: skip
        sentences.append(f"{label} was tuned with {seeds} to {join_words(parts)}; tokens are compared on {n:,} inputs.")
    return " ".join(sentences)
