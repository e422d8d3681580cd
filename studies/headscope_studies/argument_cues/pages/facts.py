"""What the results of the study argument-cues come to: numbers and sentences of its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import xarray as xr

from headscope.core.document import Document
from headscope.core.prose import count_noun, join_words
from headscope.experiments.claims import Claim, JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope_studies.argument_cues import paper, report
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.claims import CLAIMS, judge_models
from headscope_studies.argument_cues.parts import ALL, BALANCED
from headscope_studies.argument_cues.report import describe_not, name_network

RESULTS = Path(__file__).parents[1] / "results"

PARTS = ("answers", "heads", "cues")
AUDIT = "audit_"
FEW = 5
"""Verdicts on fewer seeds say so: a bootstrap of so few is too narrow, and of one it is over points alone."""


@dataclass(frozen=True)
class CueFacts(StudyFacts):
    """The numbers of every model on ARCT with its answers, heads and cues; and audits of other data by name."""

    more: Mapping[str, Mapping[str, xr.Dataset]] = field(default_factory=dict)
    audits: Mapping[str, Mapping[str, xr.Dataset]] = field(default_factory=dict)

    stem = "argument_cues_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model."""
        return judge_models(measured)

    @cached_property
    def reports(self) -> dict[str, Document]:
        """The study's own report on every model."""
        return {label: report.document({"numbers": data, **self.more[label]}) for label, data in self.measured.items()}

    @property
    def each(self) -> list[tuple[str, xr.Dataset]]:
        """The numbers of every model, without the dimension of the one dataset."""
        return [(label, data.isel(task=0)) for label, data in self.measured.items()]

    @property
    def cues(self) -> xr.Dataset:
        """The cues of ARCT, which are the same whatever the model."""
        return next(iter(self.more.values()))["cues"]


@cache
def read_facts(folder: Path = RESULTS) -> CueFacts:
    """Return the facts of all models in a folder of results."""
    stem, ends = CueFacts.stem, tuple(f"_{part}" for part in PARTS)
    paths = {path.stem.removeprefix(stem): path for path in sorted(folder.glob(f"{stem}*.nc"))}
    audits: dict[str, dict[str, xr.Dataset]] = {}
    for name, path in paths.items():
        if name.startswith(AUDIT):
            data, _, part = name.removeprefix(AUDIT).rpartition("_")
            audits.setdefault(data, {})[part] = open_result(path)
    labels = [name for name in paths if not name.endswith(ends) and not name.startswith(AUDIT)]
    more = {label: {part: open_result(paths[f"{label}_{part}"]) for part in PARTS if f"{label}_{part}" in paths}
            for label in labels}  # fmt: skip
    return CueFacts({label: open_result(paths[label]) for label in labels}, more, audits)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


def describe_runs(facts: CueFacts) -> str:
    """Return which parts every network was trained on, with how many seeds, and which trainings failed."""
    seeds, failed = (_count_trainings(facts, kind) for kind in ("seeds", "failed"))
    counts = [tuple(parts.items()) for parts in seeds.values()]
    if len(set(counts)) == 1 and len({count for _, count in counts[0]}) == 1:
        number = count_noun(counts[0][0][1], "seed")
        said = f"Every network was trained on {join_words(_quote(part) for part, _ in counts[0])}, with {number}"
    else:
        listed = {name: join_words(f"{_quote(part)} ({count_noun(count, 'seed')})" for part, count in parts.items())
                  for name, parts in seeds.items()}  # fmt: skip
        parts_run = "; ".join(f"{name} on {parts}" for name, parts in listed.items())
        said = f"**Reduced**: not every network was trained on every part with as many seeds: {parts_run}"
    total, lost = (sum(sum(parts.values()) for parts in table.values()) for table in (seeds, failed))
    if not lost:
        return f"{said}; none of {total:,} trainings failed."
    rows = {name: join_words(f"{count} of {seeds[name][part]} with {_quote(part)}" for part, count in parts.items())
            for name, parts in failed.items() if parts}  # fmt: skip
    listed_failed = "; ".join(f"{name}, {row}" for name, row in rows.items())
    return f"{said}. {lost:,} of {total:,} trainings failed: {listed_failed}."


def _count_trainings(facts: CueFacts, kind: str) -> dict[str, dict[str, int]]:
    """Return the number of trainings, `seeds` or `failed`, by network and part, without those that are 0."""
    tables = {}
    for label, data in facts.each:
        for network in data["network"].values.tolist():
            name = label if network == TUNED else f"{name_network(network)} on the embeddings of {label}"
            row = data[kind].sel(network=network)
            counts = {part: int(row.sel(part=part)) for part in data["part"].values.tolist()}
            tables[name] = {part: count for part, count in counts.items() if count}
    return tables


def _quote(part: str) -> str:
    """Return the name of a part, in quotes where it has a comma."""
    return f"“{part}”" if "," in part else part


def describe_not_printed(facts: CueFacts) -> str:
    """Return what comes out for "not", what the paper prints, and what comes nearest."""
    printed = join_words(f"{split} {right:.2f}/{share:.2f}" for split, (right, share) in paper.PRINTED.items())
    return (
        f"For “not”, `exclusive`, productivity/coverage are {describe_not(facts.cues, paper.NOT, 'exclusive')}. The "
        f"paper prints {printed}, which does not come out of the data; the nearest, by the mean difference of these "
        f"figures ([cues](cues.md)), is “not” or “n't”, which is another cue: "
        f"{describe_not(facts.cues, paper.NOT_OR, 'exclusive')}."
    )


def describe_strongest(facts: CueFacts) -> str:
    """Return the strongest cues of the training data, and what they are worth in the test set."""
    cues = facts.cues
    names = cues["cue"].values[:4].tolist()
    parts = []
    for name in names:
        right = [float(cues["productivity"].sel(cue=name, split=split)) for split in ("train", "test")]
        parts.append(f"“{name}” ({right[0]:.2f} in train, {right[1]:.2f} in test)")
    low, high = (float(cues[f"productivity_{end}"].sel(cue=names[0], split="test")) for end in ("low", "high"))
    points = int(cues["applicability"].sel(cue=names[0], split="test"))
    worth = "no more than chance" if low <= 0.5 <= high else "more than chance" if low > 0.5 else "less than chance"
    return (
        f"The cues with the largest gain in training are {join_words(parts)}, productivity in brackets. In test "
        f"“{names[0]}” is worth {worth} ({points} points, [{low:.2f}, {high:.2f}])."
    )


def describe_scaled(facts: CueFacts) -> str:
    """Return how many claims hold with thresholds as they are, halved and doubled."""
    counts = {factor: count_scaled(facts.every, factor) for factor in (1.0, 0.5, 2.0)}
    held = [sum(counts[factor][kind] for kind in facts.exact) for factor in counts]
    return f"{held[1]} verdicts hold with all of them halved and {held[2]} with all doubled, instead of {held[0]}"


def describe_claims(facts: CueFacts) -> str:
    """Return for how many models each claim holds, which rest on few seeds, and how many could be judged on none."""
    known = [claim for claim in CLAIMS if facts.verdicts(claim)]
    notes = [_note_seeds(facts, claim) for claim in known]
    same = len(set(notes)) == 1  # then it is said once
    parts = [f"“{claim.text.rstrip('.')}” for {facts.count(claim, *facts.exact)}" + ("" if same else note)
             for claim, note in zip(known, notes, strict=True)]  # fmt: skip
    lacking = len(CLAIMS) - len(known)
    also = (
        f" {lacking} of {len(CLAIMS)} claims are on networks that were not trained, or that failed." if lacking else ""
    )
    every = notes[0] if same else ""
    return f"Of the models to which they apply, these claims hold{every}: {join_words(parts)}.{also}"


def _note_seeds(facts: CueFacts, claim: Claim) -> str:
    """Return the models in which a claim rests on few seeds, in brackets."""
    counts = {label: count_seeds_behind(claim, data) for label, data in facts.each}
    few = [f"{count_noun(count, 'seed')} of {label}" for label, count in counts.items() if 0 < count < FEW]
    return f" (on only {join_words(few)})" if few else ""


def count_seeds_behind(claim: Claim, data: xr.Dataset) -> int:
    """Return the number of trainings behind a claim that did not fail: the fewest of the parts that it compares."""
    first, *others = list_parts(data)
    own = str(claim.where.get("part", BALANCED if claim.where.get("trained") == "balanced" else ALL))
    compared = {"gain": {first, own}, "unexplained": {first, *others}}.get(claim.quantity, {own})
    worked = (data["seeds"] - data["failed"]).sel(network=TUNED)
    return min(int(worked.sel(part=part)) if part in worked["part"] else 0 for part in compared)


def list_parts(data: xr.Dataset, network: str = TUNED) -> Sequence[str]:
    """Return the parts that a network was trained on, in their order."""
    seeds = data["seeds"].sel(network=network)
    return [part for part in data["part"].values.tolist() if part != BALANCED and int(seeds.sel(part=part))]
