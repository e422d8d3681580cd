"""Claims of a paper as data, judged by intervals: measured exactly, and as the paper's code measures it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Literal

import xarray as xr

from headscope.experiments.summary import list_tasks
from headscope.uncertainty.corrections import simultaneous_factor

Answer = Literal["yes", "no", "unclear"]
Direction = Literal["falls", "rises", "same", "within", "above", "below"]
CHANGES = ("falls", "rises", "same")

HOLDS, REFUTED, NOT_REPRODUCED = "holds", "refuted by exactness", "not reproduced"
UNDECIDED, MOOT = "undecided", "does not apply"
EXCEPTED = "the paper excepts this task"
CODE = "the paper's code"


@dataclass(frozen=True)
class Interval:
    """A number with its confidence interval."""

    value: float = nan
    low: float = nan
    high: float = nan

    @property
    def known(self) -> bool:
        """Whether all three numbers are finite."""
        return all(isfinite(number) for number in (self.value, self.low, self.high))

    def widen(self, factor: float) -> "Interval":
        """Return the interval with both ends moved away from the value by a factor."""
        return Interval(
            self.value, self.value - factor * (self.value - self.low), self.value + factor * (self.high - self.value)
        )


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
        scale = 100 if self.unit.startswith(("%", "points")) else 1
        return f"{scale * self.value:.4g} {self.unit}".strip()


@dataclass(frozen=True)
class Claim:
    """A claim: how a quantity of the numbers, selected by `where`, changes from raw to another attention.

    `falls`, `rises` and `same` judge the variable `<quantity>_change` against the threshold, as a part of the raw value
    if it is `relative`. `within` judges the quantity itself: it lies between `bounds`, or outside by at most the
    threshold. `above` and `below` judge on which side of the threshold it lies. The claim is judged with the lenses
    `exact`, and again with those of the paper's code, `published`; without them the quantity has no lenses. It does not
    apply to the tasks `but_on`, which the paper excepts. `applies` returns why a claim cannot be judged on a task, or
    nothing; `figures` returns numbers that explain the verdict.
    """

    text: str
    quantity: str
    where: Mapping[str, str] = field(default_factory=dict)
    direction: Direction = "falls"
    threshold: Threshold = field(kw_only=True)
    bounds: tuple[float, float] = (0.0, 0.0)
    relative: bool = False
    theirs: Mapping[str, str] = field(default_factory=dict)  # the paper's own numbers by task
    exact: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    contrast: str = CODE  # what makes the difference between exact and published
    percent: bool = False
    but_on: tuple[str, ...] = ()
    applies: Callable[[xr.Dataset], str] | None = None
    figures: Callable[[xr.Dataset], str] | None = None
    source: str = ""  # whose claim it is: the key of a reference


@dataclass(frozen=True)
class TaskVerdict:
    """The verdict on a claim for one task, with the numbers behind it.

    Intervals are those that decide: one for each exact lens, and for each published one; in the threshold's unit.
    """

    task: str
    verdict: str
    figures: str
    intervals: tuple[Interval, ...] = ()
    published: tuple[Interval, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the claim holds when it is measured exactly."""
        return self.verdict.startswith(HOLDS)

    @property
    def interval(self) -> Interval:
        """The interval of the last exact lens; NaN where the claim does not apply."""
        return self.intervals[-1] if self.intervals else Interval()


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


def judge(claim: Claim, numbers: xr.Dataset, tests: int = 1) -> JudgedClaim:
    """Judge a claim on every task by intervals that are simultaneous for a number of tests."""
    tasks = [_judge_task(claim, numbers.sel(task=task), task, tests) for task in list_tasks(numbers)]
    return JudgedClaim(claim, tuple(tasks), tests)


def scale_thresholds(judged: JudgedClaim, factor: float) -> JudgedClaim:
    """Judge a claim again, on the same intervals, with its threshold multiplied by a factor."""

    def again(task: TaskVerdict) -> TaskVerdict:
        return task if task.verdict == MOOT else _decide_task(judged.claim, task, factor)

    return JudgedClaim(judged.claim, tuple(map(again, judged.tasks)), judged.tests)


def falls(change: Interval, threshold: float) -> Answer:
    """Return whether a change is a fall of at least `threshold`.

    Yes if the interval is below 0 and the fall reaches the threshold; no if the whole interval stays above it.

    >>> falls(Interval(-0.3, -0.4, -0.2), 0.1), falls(Interval(0.0, -0.05, 0.05), 0.1)
    ('yes', 'no')
    """
    if not change.known:
        return "unclear"
    if change.high < 0 and change.value <= -threshold:
        return "yes"
    return "no" if change.low > -threshold else "unclear"


def rises(change: Interval, threshold: float) -> Answer:
    """Return whether a change is a rise of at least `threshold`."""
    return falls(Interval(-change.value, -change.high, -change.low), threshold)


def within(number: Interval, bounds: tuple[float, float]) -> Answer:
    """Return whether an interval lies within bounds: yes if all of it does, no if none of it does.

    >>> within(Interval(0.01, -0.02, 0.04), (-0.1, 0.1)), within(Interval(0.3, 0.2, 0.4), (-0.1, 0.1))
    ('yes', 'no')
    """
    if not number.known:
        return "unclear"
    if bounds[0] <= number.low and number.high <= bounds[1]:
        return "yes"
    return "no" if number.low > bounds[1] or number.high < bounds[0] else "unclear"


def above(number: Interval, threshold: float) -> Answer:
    """Return whether an interval lies above a threshold: yes if all of it does, no if all of it is below."""
    if not number.known:
        return "unclear"
    return "yes" if number.low > threshold else "no" if number.high < threshold else "unclear"


def below(number: Interval, threshold: float) -> Answer:
    """Return whether an interval lies below a threshold."""
    return above(Interval(-number.value, -number.high, -number.low), -threshold)


def combine(answers: Sequence[Answer]) -> Answer:
    """Return whether all answers are yes; one no decides.

    >>> combine(["yes", "unclear"]), combine(["yes", "no", "unclear"])
    ('unclear', 'no')
    """
    return "no" if "no" in answers else "unclear" if "unclear" in answers else "yes"


def decide(exact: Answer, published: Answer, contrast: str) -> str:
    """Return the verdict on a claim from its exact measurement and from the paper's.

    >>> decide("no", "yes", "padding"), decide("yes", "no", "padding"), decide("no", "no", "padding")
    ('refuted by exactness', 'holds only without padding', 'not reproduced')
    """
    if exact == "yes":
        return name_without(contrast) if published == "no" else HOLDS
    verdicts: dict[str, str] = {"yes": REFUTED, "no": NOT_REPRODUCED}
    return verdicts.get(published, UNDECIDED) if exact == "no" else UNDECIDED


def name_without(contrast: str) -> str:
    """Return the verdict on a claim that holds exactly, and not with what the paper's code does."""
    return f"{HOLDS} only without {contrast}"


def list_kinds(contrast: str) -> tuple[str, ...]:
    """Return all verdicts, from the claim that holds to the one that does not apply."""
    return HOLDS, REFUTED, name_without(contrast), NOT_REPRODUCED, UNDECIDED, MOOT


def answer(claim: Claim, interval: Interval, factor: float = 1.0) -> Answer:
    """Return whether a claim is true of an interval, with its threshold multiplied by a factor."""
    threshold = factor * claim.threshold.value
    if claim.direction in ("same", "within"):
        return within(interval, (claim.bounds[0] - threshold, claim.bounds[1] + threshold))
    judges = {"falls": falls, "rises": rises, "above": above, "below": below}
    return judges[claim.direction](interval, threshold)


def read_interval(claim: Claim, task: xr.Dataset, lens: str | None = None) -> Interval:
    """Return the 95 % interval that a claim is about, in the unit of its threshold."""
    # all other variables are left out: selecting from each of them takes most of the time
    part = task[[name for name in task if str(name).startswith(claim.quantity)]].sel(claim.where)
    selected = part if lens is None else part.sel(lens=lens)
    name = f"{claim.quantity}_change" if claim.direction in CHANGES else claim.quantity
    ends = [float(selected[f"{name}{end}"]) for end in ("", "_low", "_high")]
    raw = abs(float(part[claim.quantity].sel(lens="raw"))) if claim.relative else 1.0
    return Interval(*(end / raw for end in ends)) if raw > 0 else Interval()


def format_interval(claim: Claim, interval: Interval, *, ends: bool = True) -> str:
    """Return a number with its interval and unit, such as −12 % [−15, −9]."""
    scale, form, unit = 1, ".3f", ""
    if claim.percent:
        scale, form, unit = 100, ".1f", " points" if claim.direction in CHANGES else " %"
    elif claim.relative:
        scale, form, unit = 100, ".0f", " %"
    value, low, high = (f"{scale * end:{form}}" for end in (interval.value, interval.low, interval.high))
    between = f" [{low}, {high}]" if interval.known else " without an interval"
    return f"{value if isfinite(interval.value) else 'no number'}{unit}{between if ends else ''}".replace("-", "−")


def format_figures(claim: Claim, task: xr.Dataset, verdict: TaskVerdict) -> str:
    """Return the numbers of a verdict, such as 30.0 → 10.0 %, −20.0 points [−21.0, −19.0]."""
    parts = [claim.figures(task)] if claim.figures else []
    if not parts and claim.direction in CHANGES and "raw" in task.get("lens", ()):
        values = task[claim.quantity].sel(claim.where).sel(lens=["raw", claim.exact[-1]]).values
        texts = [f"{100 * value:.1f}" if claim.percent else f"{value:.3f}" for value in values]
        parts = [" → ".join(texts) + (" %" if claim.percent else "")]
    text = ", ".join([*parts, format_interval(claim, verdict.interval)])
    published = [format_interval(claim, number, ends=False) for number in verdict.published[-1:]]
    return text + "".join(f"; {CODE} {number}" for number in published)


def _judge_task(claim: Claim, task: xr.Dataset, name: str, tests: int) -> TaskVerdict:
    moot = EXCEPTED if name in claim.but_on else claim.applies(task) if claim.applies else ""
    if moot:
        return TaskVerdict(name, MOOT, moot)
    factor, lenses = simultaneous_factor(tests), (claim.exact or (None,), claim.published)
    exact, published = (tuple(_widen(claim, read_interval(claim, task, lens), factor) for lens in group)
                        for group in lenses)  # fmt: skip
    verdict = _decide_task(claim, TaskVerdict(name, UNDECIDED, "", exact, published))
    return TaskVerdict(name, verdict.verdict, format_figures(claim, task, verdict), exact, published)


def _widen(claim: Claim, interval: Interval, factor: float) -> Interval:
    """Return the interval widened, but no share below 0 or above 1."""
    wide = interval.widen(factor)
    if not claim.percent or claim.direction in CHANGES or not wide.known:
        return wide
    return Interval(wide.value, max(wide.low, 0.0), min(wide.high, 1.0))


def _decide_task(claim: Claim, task: TaskVerdict, factor: float = 1.0) -> TaskVerdict:
    groups = (task.intervals, task.published or task.intervals)
    exact, published = (combine([answer(claim, interval, factor) for interval in group]) for group in groups)
    verdict = decide(exact, published, claim.contrast)
    return TaskVerdict(task.task, verdict, task.figures, task.intervals, task.published)
