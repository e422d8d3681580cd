"""What a statistic has seen so far: named leaves that add.

States of parts add up to the state of the whole, in any order; so shards, resuming, several workers and one long loop
are the same `+`. Numbers are float64.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from headscope.core.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]
Labels = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Moments:
    """The count, mean and spread over examples of each cell; an example that is NaN there does not count there."""

    n: Array
    mean: Array  # 0 where n is 0
    square: Array  # sum of squared deviations from the mean

    @classmethod
    def of(cls, values: Array) -> "Moments":
        """From one value per example, along the first axis."""
        there = ~np.isnan(values)
        n = there.sum(0)
        known = np.where(there, values, 0.0)
        mean = known.sum(0) / np.maximum(n, 1)
        return cls(n, mean, np.square(np.where(there, values - mean, 0.0)).sum(0))

    def __add__(self, other: "Moments") -> "Moments":
        n = self.n + other.n
        apart, share = other.mean - self.mean, other.n / np.maximum(n, 1)
        return Moments(n, self.mean + apart * share, self.square + other.square + apart**2 * self.n * share)


@dataclass(frozen=True)
class Total:
    """Numbers that simply add: sums, counts, histograms."""

    sum: Array

    def __add__(self, other: "Total") -> "Total":
        return Total(self.sum + other.sum)


@dataclass(frozen=True)
class Extremes:
    """The least and the greatest value of each cell; infinite where nothing was seen."""

    least: Array
    greatest: Array

    @classmethod
    def of(cls, values: Array) -> "Extremes":
        """From one value per example, along the first axis."""
        return cls(np.fmin.reduce(values, 0, initial=np.inf), np.fmax.reduce(values, 0, initial=-np.inf))

    def __add__(self, other: "Extremes") -> "Extremes":
        return Extremes(np.minimum(self.least, other.least), np.maximum(self.greatest, other.greatest))


@dataclass(frozen=True)
class Rows:
    """The values of every example, by its id; sorted, and no id twice."""

    ids: Array
    values: Array  # example …

    @classmethod
    def of(cls, ids: Array, values: Array) -> "Rows":
        """From one id and one value per example, in any order."""
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        if len(twice := ids[1:][ids[1:] == ids[:-1]]):
            raise InputError(
                f"The values of every example are kept by its id, but the id '{twice[0]}' comes twice. Measure every "
                "example once, or give the examples ids of their own."
            )
        return cls(ids, values[order])

    def __add__(self, other: "Rows") -> "Rows":
        return Rows.of(np.concatenate([self.ids, other.ids]), np.concatenate([self.values, other.values]))


Leaf = Moments | Total | Extremes | Rows
KINDS: dict[str, type[Leaf]] = {kind.__name__: kind for kind in (Moments, Total, Extremes, Rows)}


@dataclass(frozen=True)
class State:
    """The leaves of one statistic, whose spec it carries, and the labels of their axes."""

    spec: str
    leaves: Mapping[str, Leaf]
    labels: Labels = field(default_factory=dict)

    def __add__(self, other: "State") -> "State":
        if self.spec != other.spec:
            raise InputError(
                f"Cannot add these states: one is of '{self.spec}', the other of '{other.spec}'. Measure both with "
                "the same parameters."
            )
        if self._shape() != other._shape():
            raise InputError(
                f"Cannot add these states of '{self.spec}': their axes differ. Measure both with the same model, "
                "layers and heads."
            )
        leaves = {name: cast(Any, leaf) + other.leaves[name] for name, leaf in self.leaves.items()}  # of one kind each
        return State(self.spec, leaves, self.labels)

    def _shape(self) -> str:
        kinds = {name: type(leaf).__name__ for name, leaf in self.leaves.items()}
        return json.dumps([kinds, {name: list(each) for name, each in self.labels.items()}], sort_keys=True)

    def arrays(self) -> dict[str, Array]:
        """Everything as plain arrays, for a file; the inverse of `of_arrays`."""
        kinds = {name: type(leaf).__name__ for name, leaf in self.leaves.items()}
        labels = {name: list(each) for name, each in self.labels.items()}
        about = json.dumps({"spec": self.spec, "kinds": kinds, "labels": labels}, ensure_ascii=False)
        parts = {f"{name}/{part}": each for name, leaf in self.leaves.items() for part, each in vars(leaf).items()}
        return {"about": np.array(about), **parts}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> "State":
        """A state from what `arrays` gave."""
        about = json.loads(str(arrays["about"]))
        leaves = {
            name: KINDS[kind](**{part: arrays[f"{name}/{part}"] for part in KINDS[kind].__dataclass_fields__})
            for name, kind in about["kinds"].items()
        }
        return cls(about["spec"], leaves, about["labels"])
