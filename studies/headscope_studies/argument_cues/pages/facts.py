"""What the results of the study argument-cues come to: the numbers of its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import Claim, JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope_studies.argument_cues import report
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.claims import CLAIMS, judge_models
from headscope_studies.argument_cues.parts import ALL, BALANCED

RESULTS = Path(__file__).parents[1] / "results"

FILES = ("answers", "heads", "cues")
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
    def results(self) -> dict[str, xr.Dataset]:
        """The numbers of every model, without the dimension of the one dataset."""
        return {label: data.isel(task=0) for label, data in self.measured.items()}

    @property
    def first(self) -> xr.Dataset:
        """The numbers of the first model; what is known of the data is the same in all of them."""
        return next(iter(self.results.values()))

    @property
    def cues(self) -> xr.Dataset:
        """The cues of ARCT, which are the same whatever the model."""
        return next(iter(self.more.values()))["cues"]

    @property
    def parts(self) -> list[str]:
        """The parts that networks were trained on, in quotes where they have a comma."""
        return [_quote(part) for part in self.first["part"].values.tolist()]

    @property
    def trainings(self) -> list[tuple[str, str, str, int, int]]:
        """Every model, network and part with the number of failed trainings, and of all."""
        return [
            (label, network, _quote(part), *(int(data[kind].sel(network=network, part=part)) for kind in COUNTS))
            for label, data in self.results.items()
            for network in data["network"].values.tolist()
            for part in data["part"].values.tolist()
        ]

    @property
    def failures(self) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
        """The number of failed trainings, of all, and the part, by model and network, where any failed."""
        rows: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
        for label, network, part, failed, seeds in self.trainings:
            if failed:
                rows.setdefault((label, network), []).append((failed, seeds, part))
        return rows

    def few_seeds(self, claim: Claim) -> list[tuple[int, str]]:
        """Return the models in which a claim rests on few seeds, with their number."""
        counts = [(count_seeds_behind(claim, data), label) for label, data in self.results.items()]
        return [(count, label) for count, label in counts if 0 < count < FEW]

    def strongest(self, number: int) -> list[tuple[str, float, float]]:
        """Return the strongest cues of the training data with their productivity in train and test."""
        shares = self.cues["productivity"]
        return [
            (cue, float(shares.sel(cue=cue, split="train")), float(shares.sel(cue=cue, split="test")))
            for cue in self.cues["cue"].values[:number].tolist()
        ]

    @property
    def gains(self) -> list[tuple[str, float, float, float]]:
        """What the whole input gains over warrants alone on test in points, with its interval, by model."""
        rows = {label: data.sel(network=TUNED, part=ALL, set="test") for label, data in self.results.items()}
        names = ("gain_change", "gain_change_low", "gain_change_high")
        gain, low, high = ({label: 100 * float(row[name]) for label, row in rows.items()} for name in names)
        return [(label, gain[label], low[label], high[label]) for label in rows]

    @property
    def baselines(self) -> dict[str, dict[str, list[float]]]:
        """The accuracy on test of every baseline, by what it was trained on, with each model's embeddings."""
        networks = [network for network in self.first["network"].values.tolist() if network != TUNED]
        return {
            network: {
                part: [
                    100 * float(data["accuracy_mean"].sel(network=network, part=part, set="test"))
                    for data in self.results.values()
                ]
                for part in ("warrant", ALL)
            }
            for network in networks
        }

    @property
    def learned_balanced(self) -> list[float]:
        """The accuracy in % on their own examples of trainings on adversarial data that did not fail."""
        shares: list[float] = []
        for data in self.results.values():
            runs = data.sel(network=TUNED, part=BALANCED)
            worked = ~runs["run_failed"].values.astype(bool) & np.isfinite(runs["run_learned"].values)
            shares += (100 * runs["run_learned"].values[worked]).tolist()
        return shares

    def best_heads(self, label: str) -> list[tuple[str, xr.Dataset, float]]:
        """Return the head of the largest difference by kind of attention: its numbers, and its mean over seeds."""
        data = self.results[label]
        means = self.more[label]["heads"]["difference"].mean("seed").sel(query="cls")
        rows = [(lens, data.sel(lens=lens, query="cls")) for lens in data["lens"].values.tolist()]
        return [
            (lens, row, float(means.sel(lens=lens, layer=int(row["best_layer"]), head=int(row["best_head"]))))
            for lens, row in rows
        ]

    def count_holding(self, factor: float) -> int:
        """Return how many claims hold with all thresholds multiplied by a factor."""
        counts = count_scaled(self.every, factor)
        return sum(counts[kind] for kind in self.exact)


COUNTS = ("failed", "seeds")


@cache
def read_facts(folder: Path = RESULTS) -> CueFacts:
    """Return the facts of all models in a folder of results."""
    stem, ends = CueFacts.stem, tuple(f"_{name}" for name in FILES)
    paths = {path.stem.removeprefix(stem): path for path in sorted(folder.glob(f"{stem}*.nc"))}
    audits: dict[str, dict[str, xr.Dataset]] = {}
    for name, path in paths.items():
        if name.startswith(AUDIT):
            data, _, file = name.removeprefix(AUDIT).rpartition("_")
            audits.setdefault(data, {})[file] = open_result(path)
    labels = [name for name in paths if not name.endswith(ends) and not name.startswith(AUDIT)]
    more = {
        label: {name: open_result(paths[f"{label}_{name}"]) for name in FILES if f"{label}_{name}" in paths}
        for label in labels
    }
    return CueFacts({label: open_result(paths[label]) for label in labels}, more, audits)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


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


def _quote(part: str) -> str:
    """Return the name of a part, in quotes where it has a comma."""
    return f"“{part}”" if "," in part else part
