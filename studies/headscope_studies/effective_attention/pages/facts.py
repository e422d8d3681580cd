"""What the results of the effective-attention study come to: the numbers of its page, note and objections."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Document
from headscope.experiments.claims import (
    MOOT,
    REFUTED,
    UNCLEAR,
    UNDECIDED,
    Claim,
    JudgedClaim,
    TaskVerdict,
    explain_undecided,
)
from headscope.experiments.pages.facts import StudyFacts
from headscope.experiments.rendering.report import list_scores
from headscope.experiments.rendering.sentences import compare_verdicts, list_ranges
from headscope.experiments.seeds import combine_seeds, mark_collapsed
from headscope.experiments.summary import list_tasks, relative_changes
from headscope.experiments.verdicts import count_tests, judge_all
from headscope.patterns.shares import draw_rates, estimate_shares, read_errors
from headscope.reporting.frames import ENDS
from headscope.results.seeds import COLLAPSED
from headscope.results.store import open_result
from headscope_studies.effective_attention import paper, report
from headscope_studies.effective_attention.claims import (
    CLAIMS,
    LOSES,
    SEVERAL,
    find_twins,
    judge_corrected_shares,
    judge_models,
)

RESULTS = Path(__file__).parents[1] / "results"

STEM = "effective_attention_"
SHAPE = "bert-base-shape_cpu"
BIN = 8  # tokens of a range of `distance_by_tokens`
OTHERS = ("_times", "_maps")
SINKS = {"cls": "[CLS]", "sep": "[SEP]", "special": "another special token", "word": "a word"}
SIGNED = {"size": "signed", "several": "max"}

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class PairCount:
    """A number of pairs of a model and a task, of how many, and the model where all of them are of one."""

    count: int
    total: int
    model: str | None


@dataclass(frozen=True)
class Facts(StudyFacts):
    """The numbers of every model as they were measured, and times of BERT-base's shape where there are some."""

    times: xr.Dataset | None = None

    stem = STEM
    claims = CLAIMS
    contrast = "padding"

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, and that on time where it was measured."""
        return judge_models(measured, self.times)

    @cached_property
    def tuned(self) -> dict[str, xr.Dataset]:
        """The numbers of every tuned model over all inputs."""
        return {label: data.sel(role="tuned", length="all") for label, data in self.models.items()}

    @property
    def first(self) -> xr.Dataset:
        """The numbers of the first model; what is known of the data is the same in all of them."""
        return next(iter(self.models.values()))

    @property
    def tasks(self) -> list[str]:
        """The tasks of every model."""
        return list_tasks(self.first)

    @property
    def inputs(self) -> list[int]:
        """The number of inputs of every model."""
        return [int(data["n"].sel(length="all").sum()) for data in self.models.values()]

    @property
    def value_sizes(self) -> dict[int, list[str]]:
        """The models by their value dimensions."""
        sizes: dict[int, list[str]] = {}
        for label, data in self.models.items():
            sizes.setdefault(int(data["value_size"].values[0]), []).append(label)
        return sizes

    @property
    def unlearned(self) -> dict[str, list[tuple[str, float, float, float, float]]]:
        """The scores of tasks that a model is not shown to have learned, by model."""
        scores = {label: list_scores(data, learned=False) for label, data in self.models.items()}
        return {label: rows for label, rows in scores.items() if rows}

    @cached_property
    def by_several(self) -> dict[str, dict[str, list[JudgedClaim]]]:
        """The verdicts if of several tokens of a type not the largest weight counts, but their mean or sum."""
        return {several: judge_models(self.measured, self.times, several=several) for several in SEVERAL[1:]}

    @cached_property
    def versions(self) -> dict[str, dict[str, int]]:
        """How many verdicts on a claim change if of several tokens of a type not the largest weight counts."""
        changed = {}
        for several, judged in self.by_several.items():
            frames = [compare_verdicts({"max": self.judged[label], several: judged[label]}) for label in self.models]
            counts = Counter(str(claim).rstrip(".") for frame in frames for claim, _ in frame.index)
            changed[several] = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
        return changed

    @cached_property
    def choices(self) -> dict[str, list[JudgedClaim]]:
        """The verdicts by choices that a reader might make otherwise, one at a time; the first are the study's."""
        first = {
            label: data.isel(seed=[0]).drop_vars(COLLAPSED, errors="ignore") for label, data in self.measured.items()
        }
        every = {label: data.drop_vars(COLLAPSED, errors="ignore") for label, data in self.measured.items()}
        judged = {
            "as judged here": self.judged_all,
            "patterns corrected, not counted": judge_models(self.measured, self.times, claims=judge_corrected_shares()),
            "no correction for many verdicts": judge_models(self.measured, self.times, corrected=False),
            "the first seed alone": judge_models(first, self.times),
            "seeds that collapsed, too": judge_models(every, self.times),
            "the mean of several tokens": self.by_several["mean"],
        }
        return {name: [claim for claims in groups.values() for claim in claims] for name, groups in judged.items()}

    @property
    def choice_counts(self) -> pd.DataFrame:
        """The number of each verdict by choice; undecided ones by what is unclear."""
        rows = {
            name: Counter(
                f"undecided: {explain_undecided(claim.claim, task)}" if task.verdict == UNDECIDED else task.verdict
                for claim in judged
                for task in claim.tasks
            )
            for name, judged in self.choices.items()
        }
        kinds = [kind for kind in self.kinds if kind not in (UNDECIDED, MOOT)]
        kinds += [f"undecided: {reason}" for reason in UNCLEAR]
        return pd.DataFrame.from_dict(rows, "index").reindex(columns=kinds).fillna(0).astype(int)

    @property
    def null_gap(self) -> float:
        """The largest change in points where raw's counts are corrected by raw's errors and by effective attention's.

        The counts are those of inputs of at most d tokens, whose maps do not change.
        """
        rates, _ = draw_rates(read_errors("cnn"), ["raw", "effective"], np.random.default_rng(0))
        gaps = []
        for data in self.tuned_short.values():
            for task in list_tasks(data):
                counted = data["counted"].sel(task=task, lens="raw").values.astype(float)
                both = estimate_shares(np.stack([counted, counted])[..., None], rates[..., None])[..., 0]
                gaps.append(float(abs(both[1] - both[0]).max()))
        return 100 * float(np.nanmax(gaps))

    @property
    def tuned_short(self) -> dict[str, xr.Dataset]:
        """The numbers of every tuned model over inputs of at most d tokens."""
        return {label: data.sel(role="tuned", length="at most d") for label, data in self.models.items()}

    @property
    def collapsed(self) -> list[tuple[str, str, int]]:
        """The seeds that are left out: model, task, and seed."""
        return [
            (label, task, int(seed))
            for label, data in self.measured.items()
            if COLLAPSED in data
            for task in list_tasks(data)
            for seed in data["seed"].values[data[COLLAPSED].sel(task=task).values]
        ]

    def typical(self, name: str, lens: str, length: str = "all", **where: str) -> float:
        """Return the median over pairs of the change of a weight, in per cent of the raw one."""
        return float(np.median(self.change(name, lens, length, **where)))

    def typical_by_model(self, name: str, lens: str, length: str = "all", **where: str) -> list[tuple[float, str]]:
        """Return that median over the tasks of each model by itself."""
        return [
            (Facts({label: data}).typical(name, lens, length, **where), label) for label, data in self.measured.items()
        ]

    def typical_distance(self, lens: str, *, short: bool) -> float:
        """Return the median relative change of attention over ranges of lengths, of at most d tokens or of more."""
        return float(np.median(self.distances(lens, short=short)))

    def typical_distances(self, lens: str, *, short: bool) -> list[tuple[float, str]]:
        """Return that median of each model by itself."""
        return [
            (Facts({label: data}).typical_distance(lens, short=short), label) for label, data in self.measured.items()
        ]

    def count_short(self, size: int) -> tuple[int, int]:
        """Return how many inputs have at most so many tokens, and of how many."""
        rows = self.count_longer(size)
        total = sum(row[1] for row in rows)
        return total - sum(row[0] for row in rows), total

    @property
    def weight_verdicts(self) -> int:
        """The number of verdicts on weights of types that may have several tokens."""
        return self.pairs * sum("several" in claim.where for claim in CLAIMS)

    @property
    def time(self) -> JudgedClaim:
        """The verdict on evaluation time."""
        (claim,) = self.judged_all["time"]
        return claim

    def count_pairs(self, claim: Claim, *kinds: str) -> PairCount:
        """Return for how many of the pairs that a claim applies to it has one of these verdicts."""
        return count_pairs(self.cells(claim), *kinds)

    @cached_property
    def losses_by_size(self) -> tuple[dict[str, PairCount], dict[str, PairCount]]:
        """For how many pairs a loss of weight is refuted on inputs of at most d tokens, and shown on longer ones."""
        lengths, names = ("at most d", "more than d"), ("the sink", "[CLS]", "[SEP]")
        claims = [LOSES[name] for name in names]
        tests = sum(
            count_tests(claims, data.sel(role="tuned", length=length))
            for data in self.models.values()
            for length in lengths
        )
        short, longer = (dict(zip(names, self.judge_length(claims, length, tests), strict=True)) for length in lengths)
        return (
            {name: count_pairs(cells, REFUTED) for name, cells in short.items()},
            {name: count_pairs(cells, *self.exact) for name, cells in longer.items()},
        )

    def judge_length(
        self, claims: Sequence[Claim], length: str, tests: int
    ) -> list[dict[tuple[str, str], TaskVerdict]]:
        """Return the verdicts on each claim for inputs of one length, by model and task that has such inputs."""
        models = {
            label: judge_all(claims, data.sel(role="tuned", length=length), tests)
            for label, data in self.measured.items()
        }
        return [
            {
                (label, task.task): task
                for label, judged in models.items()
                for task in judged[at].tasks
                if self.models[label]["n"].sel(task=task.task, length=length) > 0
            }
            for at in range(len(claims))
        ]

    def change(self, name: str, lens: str, length: str = "all", **where: str) -> Array:
        """Return the changes of a weight in per cent of the raw one, of all pairs with such inputs."""
        changes = [
            self.relative(label, name, length, **where)["value"].sel(lens=lens).where(data["n"].sel(length=length) > 1)
            for label, data in self.models.items()
        ]
        whole: Array = np.concatenate([change.values.ravel() for change in changes])
        known: Array = whole[np.isfinite(whole)]
        return known

    def relative(self, label: str, name: str, length: str = "all", **where: str) -> xr.Dataset:
        """Return the change of a weight in per cent of the raw one: `value`, `low` and `high`, by task and lens.

        Of several seeds each has its own ratio; the value is their mean, and the interval holds those of all.
        """
        data = self.measured[label]
        variables = [variable for variable in data if str(variable).startswith(name)]
        weights = data[variables].sel({"role": "tuned", "length": length, **where})
        changes = 100 * relative_changes(weights, name)
        left_out = {COLLAPSED: data[COLLAPSED]} if COLLAPSED in data else {}
        relative = combine_seeds(changes.assign(left_out)).drop_vars(left_out)
        names = {
            f"{name}_relative{end}": end_name for end, end_name in zip(ENDS, ("value", "low", "high"), strict=True)
        }
        return relative.rename(names)

    def count_same_direction(self) -> tuple[int, int]:
        """Return how many weights on [SEP] and [CLS] change in the same direction by both averages, and of how many."""
        same, total = 0, 0
        for data in self.tuned.values():
            tables = (data["weight"].sel(SIGNED), data["published_weight"])
            changes = [
                (weights.sel(lens="paper") - weights.sel(lens="raw")).sel(token=["sep", "cls"]) for weights in tables
            ]
            signs = [np.sign(change.transpose("task", "token").values) for change in changes]
            same, total = same + int((signs[0] == signs[1]).sum()), total + signs[0].size
        return same, total

    @property
    def share_short(self) -> float:
        """The share of inputs of at most d tokens, in per cent."""
        short, total = (
            sum(int(data["n"].sel(length=length).sum()) for data in self.models.values())
            for length in ("at most d", "all")
        )
        return 100 * short / total

    def distances(self, lens: str, *, short: bool) -> list[float]:
        """Return the relative changes of attention by ranges of 8 tokens, of at most d tokens or of more.

        Only ranges of at least two inputs of a task count.
        """
        distances: list[float] = []
        for data in self.models.values():
            tuned = data.sel(role="tuned", lens=lens)
            last = tuned["tokens"] + (BIN - 1) / 2  # the greatest number of tokens of each range
            size = int(data["value_size"].values[0])
            selected = tuned.sel(tokens=last <= size) if short else tuned.sel(tokens=last > size)
            known = selected["distance_by_tokens"].where(selected["count_by_tokens"] > 1).values
            distances += known[np.isfinite(known)].tolist()
        return distances

    def count_longer(self, size: int) -> list[tuple[int, int, str]]:
        """Return how many inputs have more than `size` tokens, where a range ends, of how many, and the task."""
        longer = [length for length in list_ranges(self.first) if int(length.partition("–")[0]) > size]
        n = self.first["n"]
        counts = n.sel(length=longer).sum("length")
        return [(int(counts.sel(task=task)), int(n.sel(task=task, length="all")), task) for task in self.tasks]

    @property
    def sinks(self) -> dict[str, list[tuple[str, float]]]:
        """Which tokens are sinks in at least a tenth of the layers and inputs, in per cent of them, by model."""
        kinds = {}
        for label, data in self.tuned.items():
            shares = data["sink_kind"].mean(("task", "layer")).to_series().sort_values(ascending=False)
            kinds[label] = [
                (SINKS.get(str(kind), str(kind)), 100 * share) for kind, share in shares.items() if share >= 0.1
            ]
        return kinds

    @property
    def twins(self) -> dict[str, list[str]]:
        """The tasks on which [CLS] and [SEP] cannot be told apart, by model."""
        tasks = {
            label: [task for task in list_tasks(data) if find_twins(data.sel(task=task))]
            for label, data in self.tuned.items()
        }
        return {label: names for label, names in tasks.items() if names}

    def raw_shares(self, pattern: str) -> list[float]:
        """Return the shares of raw maps with a pattern in per cent, of all pairs."""
        shares = [100 * data["share"].sel(lens="raw", pattern=pattern) for data in self.tuned.values()]
        return [float(value) for tasks in shares for value in tasks]

    @property
    def pattern_gaps(self) -> list[float]:
        """How far the shares of patterns of raw maps are from the paper's, before any projection."""
        return [
            abs(100 * float(data["share"].sel(lens="raw", task=task, pattern=pattern)) - paper.SHARES[task][0][at])
            for data in self.tuned.values()
            for task in list_tasks(data)
            if task in paper.SHARES
            for at, pattern in enumerate(paper.LETTERS)
        ]

    def most_changed(self, lens: str) -> int:
        """Return the largest number of predictions of a task that change with an attention in place."""
        return max(int(data["changed"].sel(lens=lens).max()) for data in self.measured.values())

    @property
    def largest_move(self) -> float:
        """How far outputs move at most with effective attention in place."""
        return max(float(data["output_change"].sel(lens="effective").max()) for data in self.measured.values())

    @property
    def score_moves(self) -> list[float]:
        """How far scores move with the paper's attention in place, in points."""
        scores = [data["score"] for data in self.measured.values()]
        moves = [score.sel(lens="paper") - score.sel(lens="raw") for score in scores]
        return [100 * value for move in moves for value in move.values.ravel()]


@cache
def read_facts(folder: Path = RESULTS) -> Facts:
    """Return the facts of all models in a folder of results."""
    paths = [path for path in sorted(folder.glob(f"{STEM}*.nc")) if not path.stem.endswith(OTHERS)]
    paths.sort(key=lambda path: ("mpnet" in path.stem, path.stem))
    shape = folder / f"{STEM}{SHAPE}_times.nc"
    models = {path.stem.removeprefix(STEM): mark_collapsed(open_result(path)) for path in paths}
    return Facts(models, open_result(shape) if shape.is_file() else None)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    reports = []
    for label, data in read_facts(folder).measured.items():
        paths = {name: folder / f"{STEM}{label}_{name}.nc" for name in ("maps", "times")}
        others = {name: open_result(path) for name, path in paths.items() if path.is_file()}
        reports.append((f"{STEM}{label}", report.document({"numbers": data, **others})))
    return reports


def count_pairs(cells: Mapping[tuple[str, str], TaskVerdict], *kinds: str) -> PairCount:
    """Return how many of the pairs that a claim applies to have one of these verdicts, and of which model if of one.

    >>> cells = {("a", "RTE"): TaskVerdict("RTE", "holds", ""), ("b", "RTE"): TaskVerdict("RTE", "undecided", "")}
    >>> count_pairs(cells, "holds"), count_pairs(cells, "holds", "undecided").model
    (PairCount(count=1, total=2, model='a'), None)
    """
    known = {pair: task.verdict for pair, task in cells.items() if task.verdict != MOOT}
    labels = [label for (label, _), verdict in known.items() if verdict in kinds]
    only = labels[0] if len(set(labels)) == 1 and len({label for label, _ in known}) > 1 else None
    return PairCount(len(labels), len(known), only)


def round_up(value: float) -> str:
    """Return a bound on a number: its first digit, rounded up, such as 0.0002 for 0.00013.

    >>> round_up(0.00013), round_up(0.0)
    ('0.0002', '0')
    """
    if value <= 0:
        return "0"
    unit = 10.0 ** np.floor(np.log10(value))
    return f"{np.ceil(value / unit) * unit:.1g}"
