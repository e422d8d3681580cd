"""What the results of the study argument-cues come to: the numbers of its page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.pages.facts import StudyFacts
from headscope.results.store import open_result
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.crossed import bootstrap_crossed
from headscope_studies.argument_cues import report
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.claims import CLAIMS, judge_models
from headscope_studies.argument_cues.data import ADVERSARIAL
from headscope_studies.argument_cues.parts import ALL, BALANCED

RESULTS = Path(__file__).parents[1] / "results"

FILES = ("answers", "heads", "cues")
AUDIT = "audit_"


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
    def trainings(self) -> list[tuple[str, str, str, int, int]]:
        """Every model, network and part with the number of failed trainings, and of all."""
        return [
            (label, network, part, *(int(data[kind].sel(network=network, part=part)) for kind in COUNTS))
            for label, data in self.results.items()
            for network in data["network"].values.tolist()
            for part in data["part"].values.tolist()
        ]

    @property
    def failures(self) -> list[tuple[int, int, str, str]]:
        """The number of failed trainings, of all, and the model, where a model was trained; and on what."""
        return [
            (failed, seeds, label, part) for label, network, part, failed, seeds in self.trainings if network == TUNED
        ]

    @property
    def pair(self) -> xr.Dataset:
        """The strongest pair of words of the training data in every set that was counted."""
        return self.cues.isel(pair=0)

    @property
    def largest_gap(self) -> float:
        """How far the accuracy of a model on the adversarial set is from chance, at most."""
        rows = [data.sel(network=TUNED, part=ALL, set=ADVERSARIAL) for data in self.results.values()]
        return max(abs(float(row["accuracy"] - row["chance"])) for row in rows)

    def find_accuracy(self, label: str, *, pair: bool | None) -> tuple[float, float, float]:
        """Return how many adversarial points a model gets in percent, with an interval over seeds and points.

        With `pair` those to which the strongest pair of words applies, with False other points with the cue, with None
        those without it.
        """
        answers = self.more[label]["answers"].sel(network=TUNED, part=ALL)
        points = answers.isel(point=np.flatnonzero(answers["of"].values == ADVERSARIAL))
        cue, both = points["cue"].values >= 0, self.cues["pair_points"].values >= 0
        chosen = ~cue if pair is None else cue & (both == pair)
        right = (points["prediction"] == points["label"]).transpose("seed", "point").values[:, chosen]
        if not right.size:
            return (np.nan,) * 3
        low, high = percentile_interval(bootstrap_crossed({"": right.astype(float)})[""])
        return 100 * float(right.mean()), 100 * float(low), 100 * float(high)

    @property
    def gains(self) -> list[tuple[str, float, float, float]]:
        """What the whole input gains over warrants alone on test in points, with its interval, by model."""
        rows = {label: data.sel(network=TUNED, part=ALL, set="test") for label, data in self.results.items()}
        names = ("gain_change", "gain_change_low", "gain_change_high")
        gain, low, high = ({label: 100 * float(row[name]) for label, row in rows.items()} for name in names)
        return [(label, gain[label], low[label], high[label]) for label in rows]

    @property
    def learned_balanced(self) -> list[float]:
        """The accuracy in % on their own examples of trainings on adversarial data that did not fail."""
        shares: list[float] = []
        for data in self.results.values():
            runs = data.sel(network=TUNED, part=BALANCED)
            worked = ~runs["run_failed"].values.astype(bool) & np.isfinite(runs["run_learned"].values)
            shares += (100 * runs["run_learned"].values[worked]).tolist()
        return shares


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
