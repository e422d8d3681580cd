"""Yes, no or unclear: what an interval says about a threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Literal

Answer = Literal["yes", "no", "unclear"]


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

    def clip(self, least: float, greatest: float) -> "Interval":
        """Return the interval with no end below `least` or above `greatest`; without ends where one is not known."""
        if not self.known:
            return Interval(self.value)
        return Interval(self.value, max(self.low, least), min(self.high, greatest))


def pool_intervals(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of values with the least and the greatest end; without ends where one of them has none.

    >>> pool_intervals([Interval(0.2, 0.1, 0.3), Interval(0.4, 0.3, 0.5)])
    Interval(value=0.30000000000000004, low=0.1, high=0.5)
    """
    value = sum(interval.value for interval in intervals) / len(intervals)
    if not all(interval.known for interval in intervals):
        return Interval(value)
    return Interval(value, min(interval.low for interval in intervals), max(interval.high for interval in intervals))


def falls(change: Interval, threshold: float) -> Answer:
    """Return whether a change is a fall of at least `threshold`.

    Yes if the interval is below 0 and the value, not the whole interval, reaches the threshold; no if the whole
    interval stays above it.

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


def all_yes(answers: Sequence[Answer]) -> Answer:
    """Return whether all answers are yes; one no decides.

    >>> all_yes(["yes", "unclear"]), all_yes(["yes", "no", "unclear"])
    ('unclear', 'no')
    """
    return "no" if "no" in answers else "unclear" if "unclear" in answers else "yes"


def unanimous(answers: Sequence[Answer]) -> Answer:
    """Return the answer that all give, such as those of several seeds; unclear where they differ.

    >>> unanimous(["no", "no"]), unanimous(["yes", "no"])
    ('no', 'unclear')
    """
    return answers[0] if len(set(answers)) == 1 else "unclear"
