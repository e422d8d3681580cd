"""Claims of a paper as data, judged by intervals: measured exactly, and as the paper's code measures it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

import xarray as xr

from headscope.experiments.summary import list_tasks

Answer = Literal["yes", "no", "unclear"]
Direction = Literal["falls", "rises", "same", "within", "mostly", "rarely"]
SURE = 0.975
"""The share of bootstrap draws from which a statement counts as certain."""

HOLDS, FAILS, UNCLEAR, MOOT = "holds", "does not hold", "cannot be said", "does not apply"


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether all three numbers are finite."""
        return all(isfinite(number) for number in (self.value, self.low, self.high))


@dataclass(frozen=True)
class Claim:
    """A claim: how a quantity of the numbers, selected by `where`, changes from raw to another attention.

    `falls`, `rises` and `same` judge the variable `<quantity>_change` against the threshold, a part of the raw value
    if it is `relative`; `within` judges the quantity itself against two bounds; `mostly` and `rarely` judge a quantity
    that is a share of bootstrap draws. The claim is judged with the lenses `exact`, and again with those of the paper's
    code, `published`; without them the quantity has no lenses. On the tasks `but_on` the paper claims the opposite.
    `applies` returns why a claim cannot be judged on a task, or nothing.
    """

    text: str
    quantity: str
    where: Mapping[str, str] = field(default_factory=dict)
    direction: Direction = "falls"
    threshold: Any = 0.0
    reason: str = ""  # why this threshold
    relative: bool = False
    theirs: Mapping[str, str] = field(default_factory=dict)  # the paper's own numbers by task
    exact: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    contrast: str = "the paper's code"  # what makes the difference between exact and published
    percent: bool = False
    but_on: tuple[str, ...] = ()
    applies: Callable[[xr.Dataset], str] | None = None
    figures: Callable[[xr.Dataset], str] | None = None


@dataclass(frozen=True)
class TaskVerdict:
    """The verdict on a claim for one task, with the numbers behind it."""

    task: str
    verdict: str
    figures: str

    @property
    def exact(self) -> bool:
        """Whether the claim holds when it is measured exactly."""
        return self.verdict == HOLDS or self.verdict.startswith("only without")


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdicts by task."""

    claim: Claim
    tasks: tuple[TaskVerdict, ...]

    @property
    def text(self) -> str:
        """The claim in words."""
        return self.claim.text

    @property
    def verdict(self) -> str:
        """The verdict on all tasks, where they agree."""
        kinds = list(dict.fromkeys(task.verdict for task in self.tasks if task.verdict != MOOT))
        return kinds[0] if len(kinds) == 1 else "differs by task" if kinds else MOOT


def judge(claim: Claim, numbers: xr.Dataset) -> JudgedClaim:
    """Judge a claim on every task of the numbers."""
    tasks = list_tasks(numbers)
    return JudgedClaim(claim, tuple(_judge_task(claim, numbers.sel(task=task), task) for task in tasks))


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


def mostly(share: float) -> Answer:
    """Return whether nearly all bootstrap draws say so, or nearly none; NaN is unclear."""
    return "yes" if share >= SURE else "no" if share <= 1 - SURE else "unclear"


def combine(answers: Sequence[Answer]) -> Answer:
    """Return whether all answers are yes; one no decides.

    >>> combine(["yes", "unclear"]), combine(["yes", "no", "unclear"])
    ('unclear', 'no')
    """
    return "no" if "no" in answers else "unclear" if "unclear" in answers else "yes"


def negate(answer: Answer) -> Answer:
    """Return the opposite answer."""
    return "no" if answer == "yes" else "yes" if answer == "no" else answer


def decide(exact: Answer, published: Answer, contrast: str) -> str:
    """Return the verdict on a claim from its exact measurement and from the paper's.

    >>> decide("no", "yes", "padding"), decide("yes", "no", "padding"), decide("yes", "unclear", "padding")
    ('only with padding', 'only without padding', 'holds')
    """
    if exact == "unclear":
        return UNCLEAR
    if exact == "yes":
        return f"only without {contrast}" if published == "no" else HOLDS
    return f"only with {contrast}" if published == "yes" else FAILS


def answer(claim: Claim, task: xr.Dataset, lens: str | None = None) -> Answer:
    """Return whether a claim is true of one task with a lens."""
    part = task.sel(claim.where)
    selected = part if lens is None else part.sel(lens=lens)
    if claim.direction in ("mostly", "rarely"):
        likely = mostly(float(selected[claim.quantity]))
        return likely if claim.direction == "mostly" else negate(likely)
    if claim.direction == "within":
        return within(_read_interval(selected, claim.quantity), claim.threshold)
    baseline = abs(float(part[claim.quantity].sel(lens="raw"))) if claim.relative else 1
    threshold, change = claim.threshold * baseline, _read_interval(selected, f"{claim.quantity}_change")
    if claim.direction == "same":
        return within(change, (-threshold, threshold))
    return falls(change, threshold) if claim.direction == "falls" else rises(change, threshold)


def format_figures(claim: Claim, task: xr.Dataset) -> str:
    """Return the quantity of a claim raw, exactly, and as published, such as 0.018 → 0.022; paper 0.016."""
    part = task.sel(claim.where)
    lenses = ["raw", *claim.exact[-1:], *claim.published[-1:]] if claim.exact else [None]
    values = [float(part[claim.quantity].sel({"lens": lens} if lens else {})) for lens in lenses]
    texts = [f"{100 * value:.1f}" if claim.percent else f"{value:.3f}" for value in values]
    unit = " %" if claim.percent else ""
    published = f"; {lenses[2]} {texts[2]}{unit}" if len(texts) > 2 else ""
    return f"{' → '.join(texts[:2])}{unit}{published}"


def _judge_task(claim: Claim, task: xr.Dataset, name: str) -> TaskVerdict:
    moot = claim.applies(task) if claim.applies else ""
    if moot:
        return TaskVerdict(name, MOOT, moot)
    lenses = (claim.exact or (None,), claim.published or claim.exact or (None,))
    exact, published = (combine([answer(claim, task, lens) for lens in group]) for group in lenses)
    if name in claim.but_on:
        exact, published = negate(exact), negate(published)
    figures = claim.figures(task) if claim.figures else format_figures(claim, task)
    return TaskVerdict(name, decide(exact, published, claim.contrast), figures)


def _read_interval(part: xr.Dataset, name: str) -> Interval:
    return Interval(*(float(part[f"{name}{end}"]) for end in ("", "_low", "_high")))
