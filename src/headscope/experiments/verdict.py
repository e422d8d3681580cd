"""Judging a published claim by intervals: measured exactly, and as the published code measures it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

Answer = Literal["yes", "no", "unclear"]
Verdict = Literal[
    "holds", "does not hold", "only with padding", "only without padding", "cannot be said", "does not apply"
]

EXACTLY: tuple[Verdict, ...] = ("holds", "only without padding")
"""Verdicts on what holds for exact effective attention, whatever the published code says."""


@dataclass(frozen=True)
class Interval:
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is a number and an interval at all."""
        return all(isfinite(each) for each in (self.value, self.low, self.high))


def falls(change: Interval, notable: float) -> Answer:
    """Whether a change is a fall of at least `notable`.

    Yes if the interval lies below 0 and the fall is notable; no if all of the interval is above a notable fall.

    >>> falls(Interval(-0.3, -0.4, -0.2), 0.1), falls(Interval(0.0, -0.05, 0.05), 0.1)
    ('yes', 'no')
    """
    if not change.known:
        return "unclear"
    if change.high < 0 and change.value <= -notable:
        return "yes"
    return "no" if change.low > -notable else "unclear"


def rises(change: Interval, notable: float) -> Answer:
    """Whether a change is a rise of at least `notable`."""
    return falls(Interval(-change.value, -change.high, -change.low), notable)


def alike(change: Interval, notable: float) -> Answer:
    """Whether nothing changes by more than `notable`: yes if all of the interval is within, no if all is outside.

    >>> alike(Interval(0.01, -0.02, 0.04), 0.1), alike(Interval(0.3, 0.2, 0.4), 0.1)
    ('yes', 'no')
    """
    if not change.known:
        return "unclear"
    if -notable <= change.low and change.high <= notable:
        return "yes"
    return "no" if change.low > notable or change.high < -notable else "unclear"


def mostly(share: float, sure: float = 0.975) -> Answer:
    """Whether nearly all draws say so, or nearly none."""
    if not isfinite(share):
        return "unclear"
    return "yes" if share >= sure else "no" if share <= 1 - sure else "unclear"


def both(answers: Sequence[Answer]) -> Answer:
    """Whether all are so: one that is not so decides.

    >>> both(["yes", "unclear"]), both(["yes", "no", "unclear"])
    ('unclear', 'no')
    """
    return "no" if "no" in answers else "unclear" if "unclear" in answers else "yes"


def opposite(answer: Answer) -> Answer:
    """Whether it is not so."""
    turned: dict[Answer, Answer] = {"yes": "no", "no": "yes", "unclear": "unclear"}
    return turned[answer]


def verdict(exact: Answer, published: Answer) -> Verdict:
    """What is to be said of a claim that is judged exactly, and as the published code has it.

    >>> verdict("no", "yes"), verdict("yes", "no"), verdict("yes", "unclear")
    ('only with padding', 'only without padding', 'holds')
    """
    if exact == "unclear":
        return "cannot be said"
    if exact == "yes":
        return "only without padding" if published == "no" else "holds"
    return "only with padding" if published == "yes" else "does not hold"


def overall(verdicts: Sequence[Verdict]) -> str:
    """One verdict for all tasks, where they agree."""
    kinds = list(dict.fromkeys(each for each in verdicts if each != "does not apply"))
    return kinds[0] if len(kinds) == 1 else "differs by task" if kinds else "does not apply"
