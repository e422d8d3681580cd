"""`hs.balance`: a part of the data in which no cue is shown to tell for or against any label."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.audit.labeled_texts import LabeledTexts
from headscope.audit.options import BalanceOptions
from headscope.audit.points import CuePoints, Floats, find_cues, find_points
from headscope.audit.words import Integers
from headscope.core.checks import check_seed
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.options import takes_options
from headscope.core.prose import count_noun
from headscope.uncertainty.intervals import CONFIDENCE

Booleans = np.ndarray[Any, np.dtype[np.bool_]]

MARGIN = 1 - 1e-9
"""Cues stay this far within their intervals, so that rounding does not put one outside."""


@takes_options(BalanceOptions)
def balance(options: BalanceOptions) -> list[Example]:
    """Return a part of the examples in which no cue is shown to tell the label, and all classes are equally frequent.

    Examples are removed until chance is within the 95 % interval of the share of every label among the examples of
    every cue: no label is favored, and of several classes none is avoided. First removed are those that agree with most
    of the cues that are off chance. No example is repeated or changed. Intervals of few examples are wide: a cue may be
    right in three of three. The cues are those of `hs.cues`, which shows the label that a cue favors. Where single cues
    are balanced, pairs of cues may still tell the label: `pairs` balances these, in place of single ones.

    >>> rows = [{"text": f"{'good' if i % 8 < 7 else 'bad'} {i}", "label": int(i % 16 < 8)} for i in range(64)]
    >>> rows += [{"text": f"great {i}", "label": 1} for i in range(20)]
    >>> balanced = hs.balance(rows, ngrams=(1,))
    >>> data = hs.cues(balanced, ngrams=(1,))
    >>> len(balanced) < len(rows), bool((data["productivity_low"] <= data["chance"]).all())
    (True, True)
    """
    seed = check_seed(options.seed)
    prepared, occurrences = find_cues(options.data, options)
    points = find_points(prepared, occurrences, "exclusive")
    order = np.argsort(points.examples, kind="stable")
    state = _Balance(prepared, points, order, len(occurrences.names), np.random.default_rng(seed))
    keep = np.ones(len(prepared.examples), bool)
    keep = state.equalize(keep, np.zeros(len(keep)))
    before = state.find_largest_gain(keep)
    while (surplus := state.find_surplus(keep)).any():
        scores = state.score(surplus)
        keep = state.equalize(state.remove(keep, scores, surplus), scores)
        if not keep.any():
            raise InputError(
                f"No part of these {count_noun(len(keep), 'example')} is balanced: all would have to be removed. Look "
                "for fewer cues, with ngrams or parts."
            )
    _warn_wide(keep, before, state.find_largest_gain(keep))
    return [example for example, stays in zip(prepared.examples, keep, strict=True) if stays]


def _warn_wide(keep: Booleans, before: float, after: float) -> None:
    """Say so where cues are within their intervals only because few examples are left."""
    if 0 < before <= after and not keep.all():
        warnings.warn(
            f"{count_noun(int(keep.sum()), 'example')} of {len(keep):,} are left, and the largest gain of a cue is "
            f"{after:.3f}, no less than before: cues are within their intervals because these are wide. Give more "
            "examples, or look for fewer cues, with ngrams or parts.",
            DataWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class _Balance:
    """The cues of the examples, and the steps that remove examples."""

    data: LabeledTexts
    points: CuePoints
    order: Integers  # of the points by example
    cues: int
    random: np.random.Generator

    @property
    def outcomes(self) -> int:
        """The number of classes; of a multiple choice, right and wrong."""
        return len(self.data.classes) or 2

    def equalize(self, keep: Booleans, scores: Floats) -> Booleans:
        """Remove examples of the more frequent classes, those with the largest scores first; choices stay."""
        if self.data.kind == "choice":
            return keep
        least = np.bincount(self.data.labels[keep], minlength=self.outcomes).min()
        keep = keep.copy()
        for label in range(self.outcomes):
            own = np.flatnonzero(keep & (self.data.labels == label))
            own = own[np.lexsort((self.random.random(len(own)), -scores[own]))]
            keep[own[: len(own) - least]] = False
        return keep

    def find_surplus(self, keep: Booleans) -> "_Surplus":
        """Return how many examples of every cue must go until chance is within the interval of each outcome."""
        from scipy.special import ndtri

        counts, total, rates = self._count(keep)
        z = MARGIN * float(ndtri((1 + CONFIDENCE) / 2))
        off, spread = counts - total * rates, z * np.sqrt(total * rates * (1 - rates))
        # an outcome that is too rare is one whose complement is too frequent
        excess = np.where(off > spread, _count_excess(counts, total, rates, z), 0)
        lack = np.where(-off > spread, _count_excess(total - counts, total, 1 - rates, z), 0)
        return _Surplus(excess, lack, off > 0)

    def find_largest_gain(self, keep: Booleans) -> float:
        """Return the largest coverage · |share − chance| of all cues and outcomes."""
        counts, total, rates = self._count(keep)
        return float(np.abs(counts - total * rates).max(initial=0.0)) / max(int(keep.sum()), 1)

    def _count(self, keep: Booleans) -> tuple[Integers, Integers, Floats]:
        """Return the examples of every cue and outcome, those of the cue, and the share the outcome should have."""
        retained = keep[self.points.examples]
        cues, outcomes = self.points.cues[retained], self.points.outcomes[retained]
        counts = np.bincount(cues * self.outcomes + outcomes, minlength=self.cues * self.outcomes)
        counts = counts.reshape(self.cues, self.outcomes)
        return counts, counts.sum(1, keepdims=True), self._rates(cues, self.points.chances[retained])

    def _rates(self, cues: Integers, chances: Floats) -> Floats:
        """Return what the share of each outcome should be, `cue outcome`."""
        if self.data.kind == "classification":
            return np.full((self.cues, self.outcomes), 1 / self.outcomes)
        applicable = np.bincount(cues, minlength=self.cues)
        chance = np.bincount(cues, chances, self.cues) / np.maximum(applicable, 1)
        chance = np.where(applicable > 0, chance, 0.5)
        return np.stack([1 - chance, chance], axis=1)

    def score(self, surplus: "_Surplus") -> Floats:
        """Return for each example how many of its cues gain by its removal, minus those that lose."""
        gains = (surplus.excess > 0) | (surplus.lack > 0).any(1, keepdims=True) & surplus.frequent
        balance = 2.0 * gains - gains.any(1, keepdims=True)
        values = balance[self.points.cues, self.points.outcomes]
        return np.bincount(self.points.examples, values, len(self.data.examples)).astype(np.float64)

    def remove(self, keep: Booleans, scores: Floats, surplus: "_Surplus") -> Booleans:
        """Remove examples in the order of their scores, each only while most of its cues still need it.

        Where no example is good for most of its cues, the first that is good for one of them is removed.
        """
        keep, left = keep.copy(), surplus.copy()
        starts = np.searchsorted(self.points.examples[self.order], np.arange(len(keep) + 1))
        candidates = np.flatnonzero(keep)
        candidates = candidates[np.lexsort((self.random.random(len(candidates)), -scores[candidates]))]
        first = None
        for example in candidates:
            own = self.order[starts[example] : starts[example + 1]]
            cues, outcomes = self.points.cues[own], self.points.outcomes[own]
            needed = left.find_needed(cues, outcomes)
            if not needed.any():
                continue
            first = example if first is None else first
            harmed = left.find_off(cues) & ~needed
            if needed.sum() > harmed.sum():
                keep[example] = False
                left.remove(cues, outcomes)
        if first is not None and keep[candidates].all():
            keep[first] = False
        return keep


@dataclass(frozen=True)
class _Surplus:
    """How many examples of every cue and outcome must go, `cue outcome`; 0 within the interval.

    `excess` counts those of an outcome that is too frequent, `lack` those of the other outcomes where it is too rare.
    `frequent` is where an outcome is above chance: others are not removed for the sake of a rare one.
    """

    excess: Integers
    lack: Integers
    frequent: Booleans

    def any(self) -> bool:
        return bool(self.excess.any() or self.lack.any())

    def copy(self) -> "_Surplus":
        return _Surplus(self.excess.copy(), self.lack.copy(), self.frequent)

    def find_off(self, cues: Integers) -> Booleans:
        """Return which cues are still off chance."""
        return np.asarray((self.excess[cues] > 0).any(-1) | (self.lack[cues] > 0).any(-1))

    def find_needed(self, cues: Integers, outcomes: Integers) -> Booleans:
        """Return which cues gain by the removal of an example with this outcome."""
        others_lack = (self.lack[cues] > 0).any(-1) & self.frequent[cues, outcomes]
        return np.asarray((self.excess[cues, outcomes] > 0) | others_lack)

    def remove(self, cues: Integers, outcomes: Integers) -> None:
        """Count an example as removed."""
        self.excess[cues, outcomes] -= 1
        self.lack[cues] -= 1
        self.lack[cues, outcomes] += 1


def _count_excess(counts: Integers, total: Integers, rates: Floats, z: float) -> Integers:
    """Return how many examples of an outcome must go until its rate is within Wilson's interval.

    The interval holds the rate p if count − total · p ≤ z √(total · p q). Without r of the examples this is a quadratic
    inequality in √(total − r).
    """
    others = 1 - rates
    spread = z * np.sqrt(rates * others)
    over = counts - total * rates - total * others  # −(total − count)
    root = (spread + np.sqrt(spread**2 - 4 * others * over)) / (2 * others)
    return np.ceil(total - root**2 - 1e-9).clip(1).astype(np.int64)
