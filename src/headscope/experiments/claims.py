"""Claims of a paper as data, judged by intervals: measured exactly, and as the paper's code measures it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Literal

import numpy as np
import xarray as xr

from headscope.core.estimate import estimate
from headscope.core.prose import format_signed
from headscope.experiments.answers import (
    Answer,
    Interval,
    above,
    all_yes,
    below,
    falls,
    pool_intervals,
    rises,
    unanimous,
    within,
)
from headscope.experiments.seeds import combine_seeds, keep_seeds
from headscope.experiments.summary import list_tasks, relative_changes
from headscope.uncertainty.corrections import simultaneous_factor

Direction = Literal["falls", "rises", "same", "within", "above", "below"]
CHANGES = ("falls", "rises", "same")

HOLDS, REFUTED, NOT_REPRODUCED = "holds", "refuted by exactness", "not reproduced"
UNDECIDED, MOOT = "undecided", "does not apply"
UNCLEAR = ("exact unclear", "published unclear", "seeds differ")
"""Why a claim is undecided."""

EXCEPTED = "the paper excepts this task"
CODE = "the paper's code"
FEWEST = 20
"""No verdict on fewer inputs: Student's intervals of skewed weights do not hold there, least of all widened ones."""


@dataclass(frozen=True)
class Threshold:
    """How large an effect must be to count, why, and since when; `unit` is % of the raw value, points, × or other."""

    name: str  # what is measured against it
    value: float
    unit: str
    reason: str
    date: str

    @property
    def text(self) -> str:
        """The value with its unit, such as 5 points."""
        value = (100 if self.unit.startswith(("%", "points")) else 1) * self.value
        unit = "point" if self.unit == "points" and abs(value) == 1 else self.unit
        return f"{value:.4g} {unit}".strip().replace("-", "−")


@dataclass(frozen=True)
class Claim:
    """A claim: how a quantity of the numbers, selected by `where`, changes from raw to another attention.

    `falls`, `rises` and `same` judge the variable `<quantity>_change` against the threshold, as a part of the raw value
    if it is `relative`. `within` judges the quantity itself: it lies between `bounds`, or outside by at most the
    threshold. `above` and `below` judge on which side of the threshold it lies. The claim is judged with the lenses
    `exact`, and again with those of the paper's code, `published`; without them the quantity has no lenses. It does not
    apply to the tasks `but_on`, which the paper excepts. `applies` returns why a claim cannot be judged on a task, or
    nothing; `figures` returns numbers that explain the verdict. It is undecided on fewer than `fewest` inputs. The
    quantity cannot lie outside `limits`, such as −1 and 1 for a correlation, and nor do widened intervals of it. A
    `p_value` is shown without an interval: it has none. Widened intervals allow for inputs of this `skewness`.
    """

    text: str
    quantity: str
    where: Mapping[str, str | int] = field(default_factory=dict)
    direction: Direction = "falls"
    threshold: Threshold = field(kw_only=True)
    bounds: tuple[float, float] = (0.0, 0.0)
    relative: bool = False
    theirs: Mapping[str, str] = field(default_factory=dict)  # the paper's own numbers by task
    exact: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    contrast: str = CODE  # what makes the difference between exact and published
    percent: bool = False  # a share, between 0 and 1; with limits, a difference of shares
    p_value: bool = False
    limits: tuple[float, float] = (-inf, inf)
    but_on: tuple[str, ...] = ()
    applies: Callable[[xr.Dataset], str] | None = None
    figures: Callable[[xr.Dataset], str] | None = None
    source: str = ""  # whose claim it is: the key of a reference
    fewest: int = FEWEST
    skewness: float = 0.0


@dataclass(frozen=True)
class TaskVerdict:
    """The verdict on a claim for one task, with the numbers behind it.

    Intervals are those that decide: for each exact lens, and for each published one, one of every seed; in the unit of
    the threshold. Each is a 95 % interval, widened by the factor. There are none where the claim could not be judged.
    """

    task: str
    verdict: str
    figures: str
    intervals: tuple[tuple[Interval, ...], ...] = ()
    published: tuple[tuple[Interval, ...], ...] = ()
    factor: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether the claim holds when it is measured exactly."""
        return self.verdict.startswith(HOLDS)

    @property
    def interval(self) -> Interval:
        """The interval of the last exact lens, which holds those of all seeds; NaN where there is none."""
        return pool_intervals(self.intervals[-1]) if self.intervals else Interval()


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdicts by task; `tests` is the number of verdicts that its intervals are corrected for."""

    claim: Claim
    tasks: tuple[TaskVerdict, ...]
    tests: int = 1

    @property
    def text(self) -> str:
        """The claim in words."""
        return self.claim.text

    @property
    def verdict(self) -> str:
        """The verdict on all tasks, where they agree."""
        kinds = list(dict.fromkeys(task.verdict for task in self.tasks if task.verdict != MOOT))
        return kinds[0] if len(kinds) == 1 else "differs by task" if kinds else MOOT


Task = tuple[xr.Dataset, xr.Dataset]
"""The numbers of one task, as they were measured and with their seeds combined."""


def split_tasks(numbers: xr.Dataset) -> list[Task]:
    """Return the numbers of each task, once for all claims: to select them takes longer than to judge them.

    Seeds that are marked as collapsed are left out.
    """
    combined = combine_seeds(numbers)
    return [(keep_seeds(numbers.sel(task=task)), combined.sel(task=task)) for task in list_tasks(numbers)]


def judge(claim: Claim, numbers: xr.Dataset, tests: int = 1) -> JudgedClaim:
    """Judge a claim on every task by intervals that are simultaneous for a number of tests.

    With a dimension `seed`, each seed has its own interval and answer, and the seeds must agree.
    """
    return judge_tasks(claim, split_tasks(numbers), tests)


def judge_tasks(claim: Claim, tasks: Sequence[Task], tests: int = 1) -> JudgedClaim:
    """Judge a claim on tasks that are split already."""
    verdicts = [reason_not_judged(claim, whole) or _judge_task(claim, task, whole, tests) for task, whole in tasks]
    return JudgedClaim(claim, tuple(verdicts), tests)


def reason_not_judged(claim: Claim, task: xr.Dataset) -> TaskVerdict | None:
    """Return the verdict on a claim that cannot be judged, with the reason; nothing where it can."""
    name = str(task["task"].values)
    moot = EXCEPTED if name in claim.but_on else claim.applies(task) if claim.applies else ""
    if moot:
        return TaskVerdict(name, MOOT, moot)
    n = int(task["n"]) if "n" in task else None
    if n is None or n >= claim.fewest:
        return None
    return TaskVerdict(name, UNDECIDED, f"n = {n}, fewer than {claim.fewest}")


def count_units(task: xr.Dataset) -> int | None:
    """Return the number of units behind the intervals of a task; nothing where it is not known.

    They are inputs, or documents where these were drawn again: at most as many as have a word or mention that counts.
    """
    return min((int(task[name]) for name in ("documents", "n") if name in task), default=None)


def scale_thresholds(judged: JudgedClaim, factor: float) -> JudgedClaim:
    """Judge a claim again, on the same intervals, with its threshold multiplied by a factor."""

    def again(task: TaskVerdict) -> TaskVerdict:
        return _decide_task(judged.claim, task, factor) if task.intervals else task

    return JudgedClaim(judged.claim, tuple(map(again, judged.tasks)), judged.tests)


def decide(exact: Answer, published: Answer, contrast: str) -> str:
    """Return the verdict on a claim from its exact measurement and from the paper's.

    Where the exact one is unclear, or it says no and the paper's is unclear, the claim is undecided.

    >>> decide("no", "yes", "padding"), decide("yes", "no", "padding"), decide("no", "no", "padding")
    ('refuted by exactness', 'holds only without padding', 'not reproduced')
    """
    if exact == "yes":
        return name_without(contrast) if published == "no" else HOLDS
    verdicts: dict[str, str] = {"yes": name_refuted(contrast), "no": NOT_REPRODUCED}
    return verdicts.get(published, UNDECIDED) if exact == "no" else UNDECIDED


def explain_undecided(claim: Claim, task: TaskVerdict) -> str:
    """Return why a claim is undecided, one of UNCLEAR; of other verdicts nothing.

    The seeds differ where their exact answers do; the paper's code is unclear where all seeds deny the claim exactly.
    """
    if task.verdict != UNDECIDED:
        return ""
    if not task.intervals:
        return UNCLEAR[0]
    seeds = zip(*task.intervals, strict=True)
    exact = {all_yes([answer(claim, interval) for interval in seed]) for seed in seeds}
    return UNCLEAR[2] if len(exact) > 1 else UNCLEAR[0] if exact == {"unclear"} else UNCLEAR[1]


def name_without(contrast: str) -> str:
    """Return the verdict on a claim that holds exactly, and not with what the paper's code does."""
    return f"{HOLDS} only without {contrast}"


def name_refuted(contrast: str) -> str:
    """Return the verdict on a claim that only the paper's code shows, which may differ in more than exactness."""
    return f"shown only by {contrast}" if contrast == CODE else REFUTED


def list_verdict_names(contrast: str) -> tuple[str, ...]:
    """Return all verdicts, from the claim that holds to the one that does not apply."""
    return HOLDS, name_refuted(contrast), name_without(contrast), NOT_REPRODUCED, UNDECIDED, MOOT


def answer(claim: Claim, interval: Interval, factor: float = 1.0) -> Answer:
    """Return whether a claim is true of an interval, with its threshold multiplied by a factor."""
    threshold = factor * claim.threshold.value
    if claim.direction in ("same", "within"):
        return within(interval, (claim.bounds[0] - threshold, claim.bounds[1] + threshold))
    judges = {"falls": falls, "rises": rises, "above": above, "below": below}
    return judges[claim.direction](interval, threshold)


def answer_seeds(claim: Claim, lenses: Sequence[Sequence[Interval]], factor: float = 1.0) -> Answer:
    """Return whether a claim is true of every seed, from the intervals of each lens by seed.

    A seed says yes where all lenses do. Yes if all seeds say yes, no if all say no, unclear otherwise.
    """
    seeds = zip(*lenses, strict=True)
    return unanimous([all_yes([answer(claim, interval, factor) for interval in seed]) for seed in seeds])


def read_intervals(
    claim: Claim, task: xr.Dataset, lens: str | None = None, factor: float = 1.0
) -> tuple[Interval, ...]:
    """Return the 95 % intervals that a claim is about, one of each seed, widened by a factor.

    They are in the unit of the claim's threshold. Without a dimension `seed` there is one.
    """
    return _read_lens(claim, *_select_quantity(claim, task), lens, factor)


def _select_quantity(claim: Claim, task: xr.Dataset) -> tuple[xr.Dataset, str]:
    """Return what the intervals of a claim are read from, for all lenses, and the name of the variable."""
    # all other variables are left out: selecting from each of them takes most of the time
    part = task[[name for name in task if str(name).startswith(claim.quantity)]].sel(claim.where)
    if claim.relative:
        return relative_changes(part, claim.quantity), f"{claim.quantity}_relative"
    return part, f"{claim.quantity}_change" if claim.direction in CHANGES else claim.quantity


def _read_lens(claim: Claim, part: xr.Dataset, name: str, lens: str | None, factor: float) -> tuple[Interval, ...]:
    selected = part if lens is None else part.sel(lens=lens)
    ends = [np.atleast_1d(end.values).astype(float) for end in estimate(selected, name).ends]
    widened = [Interval(*map(float, seed)).widen(factor) for seed in zip(*ends, strict=True)]
    if claim.direction in CHANGES:
        return tuple(widened)
    limits = (0.0, 1.0) if claim.percent and not isfinite(claim.limits[0]) else claim.limits
    return tuple(interval.clip(*limits) if isfinite(limits[0]) else interval for interval in widened)


def format_interval(claim: Claim, interval: Interval, *, ends: bool = True) -> str:
    """Return a number with its interval and unit, such as −12 % [−15, −9]."""
    if claim.p_value:
        return f"p = {interval.value:.2g}"
    scale, form, unit = 1, ".3f", ""
    if claim.percent:
        differs = claim.direction in CHANGES or isfinite(claim.limits[0])
        scale, form, unit = 100, ".1f", " points" if differs else " %"
    elif claim.relative:
        scale, form, unit = 100, ".0f", " %"
    value, low, high = (format_signed(scale * end, form) for end in (interval.value, interval.low, interval.high))
    between = f" [{low}, {high}]" if interval.known else " without an interval"
    return f"{value if isfinite(interval.value) else 'no number'}{unit}{between if ends else ''}"


def format_figures(claim: Claim, task: xr.Dataset, verdict: TaskVerdict) -> str:
    """Return the numbers of a verdict, such as 30.0 → 10.0 %, −20.0 points [−21.0, −19.0]."""
    parts = [claim.figures(task)] if claim.figures else []
    if not parts and claim.exact and claim.direction in CHANGES and "raw" in task.get("lens", ()):
        values = task[claim.quantity].sel({**claim.where, "lens": ["raw", claim.exact[-1]]}).values
        texts = [f"{100 * value:.1f}" if claim.percent else f"{value:.3f}" for value in values]
        parts = [" → ".join(texts) + (" %" if claim.percent else "")]
    text = ", ".join([*parts, format_interval(claim, verdict.interval)])
    published = [format_interval(claim, pool_intervals(seeds), ends=False) for seeds in verdict.published[-1:]]
    return text + "".join(f"; {CODE} {number}" for number in published)


def _judge_task(claim: Claim, seeds: xr.Dataset, task: xr.Dataset, tests: int) -> TaskVerdict:
    factor = simultaneous_factor(max(tests, 1), count_units(task), skewness=claim.skewness)
    lenses = (claim.exact or (None,), claim.published)
    part, name = _select_quantity(claim, seeds)
    exact, published = (tuple(_read_lens(claim, part, name, lens, factor) for lens in group) for group in lenses)
    verdict = _decide_task(claim, TaskVerdict(str(task["task"].values), UNDECIDED, "", exact, published, factor))
    return replace(verdict, figures=format_figures(claim, task, verdict))


def _decide_task(claim: Claim, task: TaskVerdict, factor: float = 1.0) -> TaskVerdict:
    groups = (task.intervals, task.published or task.intervals)
    exact, published = (answer_seeds(claim, lenses, factor) for lenses in groups)
    return replace(task, verdict=decide(exact, published, claim.contrast))
