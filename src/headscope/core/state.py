"""States of statistics: named accumulators that can be added.

The states of parts add up to the state of the whole, in any order, so that shards, resumed runs and several workers
all use `+`. Numbers are float64.
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
    """Count, mean and sum of squared deviations over examples, for each cell; NaN values are left out."""

    n: Array
    mean: Array  # 0 where n is 0
    square: Array  # sum of squared deviations from the mean

    @classmethod
    def from_values(cls, values: Array) -> "Moments":
        """Build from one value per example, along the first axis."""
        valid = ~np.isnan(values)
        n = valid.sum(0)
        mean = np.where(valid, values, 0.0).sum(0) / np.maximum(n, 1)
        return cls(n, mean, np.square(np.where(valid, values - mean, 0.0)).sum(0))

    def __add__(self, other: "Moments") -> "Moments":
        n = self.n + other.n
        delta, share = other.mean - self.mean, other.n / np.maximum(n, 1)
        return Moments(n, self.mean + delta * share, self.square + other.square + delta**2 * self.n * share)


@dataclass(frozen=True)
class Total:
    """Numbers that add: sums, counts, histograms."""

    sum: Array

    def __add__(self, other: "Total") -> "Total":
        return Total(self.sum + other.sum)


@dataclass(frozen=True)
class Rows:
    """The values of every example, sorted by id; ids are unique."""

    ids: Array
    values: Array  # example …

    @classmethod
    def from_values(cls, ids: Array, values: Array) -> "Rows":
        """Build from ids and values in any order."""
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        if len(duplicates := ids[1:][ids[1:] == ids[:-1]]):
            raise InputError(
                f"The values of every example are kept by its id, but the id '{duplicates[0]}' comes twice. Measure "
                "every example once, or give the examples ids of their own."
            )
        return cls(ids, values[order])

    def __add__(self, other: "Rows") -> "Rows":
        return Rows.from_values(np.concatenate([self.ids, other.ids]), np.concatenate([self.values, other.values]))


@dataclass(frozen=True)
class Extremes:
    """The examples of largest and of smallest value for each cell, and the values of a sample drawn before.

    Its size does not grow with the examples. Examples are known by their positions; of equal values the earlier example
    comes first. NaN and −1 stand for none.
    """

    largest: Array  # rank …
    largest_at: Array
    smallest: Array  # rank …
    smallest_at: Array
    sample: Array  # place in the sample …

    @classmethod
    def from_values(cls, at: Array, values: Array, size: int, sample: Array) -> "Extremes":
        """Build from the positions of examples and their values; `sample` holds positions in ascending order."""
        places = np.broadcast_to(at.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
        sampled = np.full((len(sample), *values.shape[1:]), np.nan)
        known = np.isin(at, sample)
        sampled[np.searchsorted(sample, at[known])] = values[known]
        return cls(*_take_first(-values, places, size, -1), *_take_first(values, places, size, 1), sampled)

    def __add__(self, other: "Extremes") -> "Extremes":
        size = len(self.largest)
        largest, largest_at = (
            np.concatenate(pair) for pair in ((self.largest, other.largest), (self.largest_at, other.largest_at))
        )
        smallest, smallest_at = (
            np.concatenate(pair) for pair in ((self.smallest, other.smallest), (self.smallest_at, other.smallest_at))
        )
        sample = np.where(np.isnan(self.sample), other.sample, self.sample)
        return Extremes(
            *_take_first(-largest, largest_at, size, -1), *_take_first(smallest, smallest_at, size, 1), sample
        )


def _take_first(keys: Array, at: Array, size: int, sign: int) -> tuple[Array, Array]:
    """Return sign · key and the position of the `size` smallest keys of each cell; NaN and −1 where there are fewer."""
    missing = np.isnan(keys)
    order = np.lexsort((at, np.where(missing, np.inf, keys), missing), axis=0)[:size]  # infinity is a value, NaN none
    values = np.full((size, *keys.shape[1:]), np.nan)
    places = np.full((size, *keys.shape[1:]), -1, np.int64)
    values[: len(order)] = sign * np.take_along_axis(keys, order, 0)
    places[: len(order)] = np.where(np.isnan(values[: len(order)]), -1, np.take_along_axis(at, order, 0))
    return values, places


Leaf = Moments | Total | Rows | Extremes
LEAF_TYPES: dict[str, type[Leaf]] = {leaf_type.__name__: leaf_type for leaf_type in (Moments, Total, Rows, Extremes)}


@dataclass(frozen=True)
class State:
    """The leaves of one statistic with its spec, and the labels of their axes."""

    spec: str
    leaves: Mapping[str, Leaf]
    labels: Labels = field(default_factory=dict)
    lens: str = ""  # known when a result is made of the state of all examples

    def __add__(self, other: "State") -> "State":
        if self.spec != other.spec:
            raise InputError(
                f"Cannot add these states: one is of '{self.spec}', the other of '{other.spec}'. Measure both with "
                "the same parameters."
            )
        if self._layout() != other._layout():
            raise InputError(
                f"Cannot add these states of '{self.spec}': their axes differ. Measure both with the same model, "
                "layers and heads."
            )
        leaves = {name: cast(Any, leaf) + other.leaves[name] for name, leaf in self.leaves.items()}
        return State(self.spec, leaves, self.labels)

    def _layout(self) -> dict[str, Any]:
        leaf_types = {name: type(leaf).__name__ for name, leaf in self.leaves.items()}
        return {"kinds": leaf_types, "labels": {name: list(axis) for name, axis in self.labels.items()}}

    def arrays(self) -> dict[str, Array]:
        """Return the state as plain arrays, for a file; the inverse of `from_arrays`."""
        about = json.dumps({"spec": self.spec, **self._layout()}, ensure_ascii=False)
        fields = {f"{name}/{field}": array for name, leaf in self.leaves.items() for field, array in vars(leaf).items()}
        return {"about": np.array(about), **fields}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> "State":
        """Build a state from the result of `arrays`; raise ValueError, KeyError or TypeError for anything else."""
        about = json.loads(str(arrays["about"]))
        leaves = {
            name: LEAF_TYPES[leaf_type](
                **{field: arrays[f"{name}/{field}"] for field in LEAF_TYPES[leaf_type].__dataclass_fields__}
            )
            for name, leaf_type in about["kinds"].items()
        }
        expected = {f"{name}/{field}" for name, leaf in leaves.items() for field in vars(leaf)}
        if set(arrays) - {"about"} != expected or not all(map(_is_sound, leaves.values())):
            raise ValueError("The arrays of this state do not fit together.")
        if not isinstance(about["spec"], str) or not all(isinstance(axis, list) for axis in about["labels"].values()):
            raise ValueError("The spec or the labels of this state are of the wrong type.")
        return cls(about["spec"], leaves, about["labels"])


def _is_sound(leaf: Leaf) -> bool:
    """Return whether the arrays of a leaf hold numbers and have shapes that go together."""
    if isinstance(leaf, Rows):
        return leaf.ids.ndim == 1 and leaf.values.shape[:1] == leaf.ids.shape and leaf.values.dtype.kind in "fiub"
    arrays = list(vars(leaf).values())
    if isinstance(leaf, Extremes):
        same = leaf.largest.shape == leaf.largest_at.shape == leaf.smallest.shape == leaf.smallest_at.shape
        return same and leaf.sample.shape[1:] == leaf.largest.shape[1:] and all(a.dtype.kind in "fi" for a in arrays)
    return len({array.shape for array in arrays}) == 1 and all(array.dtype.kind in "fiub" for array in arrays)
