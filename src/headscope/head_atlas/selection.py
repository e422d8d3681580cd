"""Which examples of a corpus are shown for each head: the most active, the median and the least active.

During the measurement each head keeps the positions of a few examples of largest and of smallest activity, and the
activities of a sample of the corpus, which is drawn before. So memory does not grow with the corpus. The median is that
of the sample: exact where the corpus is no larger.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from headscope.core.errors import InputError
from headscope.core.spec import entry_name, to_spec
from headscope.core.state import Array, Extremes, Rows, State
from headscope.core.statistic import Statistic
from headscope.maps.per_example import PerExample
from headscope.measuring.observe import Key, States
from headscope.measuring.plan import PlannedBatch

SAMPLE = 1000
"""Examples whose activity is known for every head, to find the median."""

LEAF = "examples"
"""The leaf of a state that says which examples are shown."""

GROUPS = ("strongest", "median", "weakest")

Head = tuple[int, int]
"""Labels of a layer and a head."""


@dataclass(frozen=True)
class Pick:
    """An example that is shown for a head."""

    position: int  # among the examples of the run
    group: str
    activity: float
    above: float  # share of the sampled examples with a smaller activity


@dataclass(frozen=True)
class Selector:
    """Reduces the states of a batch: of the values of its examples, only extremes and those of the sample are kept."""

    key: Key  # lens and statistic
    variable: str
    size: int
    sample: Array

    @classmethod
    def make(cls, lens: str, activity: Statistic, count: int, size: int, seed: int) -> "Selector":
        """Return the selector of an activity in `count` examples; raise InputError where it cannot sort them."""
        if not isinstance(activity, PerExample):
            raise InputError(
                f"activity='{to_spec(activity)}' has no value for each example, so examples cannot be sorted by it. "
                "Give another statistic, such as activity, entropy or peak."
            )
        key, sample = (lens, to_spec(activity)), draw_sample(count, seed)
        return cls(key, entry_name(type(activity)), size, sample)

    def __call__(self, batch: PlannedBatch, states: States) -> States:
        """Return the states of a batch without the values of single examples."""
        _check_heads({lens: state for (lens, spec), state in states.items() if spec == self.key[1]})
        return {key: self._reduce(state, batch if key == self.key else None) for key, state in states.items()}

    def _reduce(self, state: State, batch: PlannedBatch | None) -> State:
        leaves = {name: leaf for name, leaf in state.leaves.items() if not isinstance(leaf, Rows)}
        if batch is not None:
            rows = state.leaves[f"{self.variable}_rows"]
            assert isinstance(rows, Rows)
            _check_axes(state, rows)
            positions = {example.id: at for example, at in zip(batch.examples, batch.positions, strict=True)}
            at = np.array([positions[str(name)] for name in rows.ids], np.int64)
            leaves[LEAF] = Extremes.from_values(at, rows.values, self.size, self.sample)
        return replace(state, leaves=leaves)


def draw_sample(count: int, seed: int) -> Array:
    """Return the positions of the examples whose activities are kept, in ascending order: all, or `SAMPLE` of them."""
    return np.array(sorted(random.Random(seed).sample(range(count), min(count, SAMPLE))), np.int64)


def pick_examples(state: State, size: int, sample: Array) -> dict[Head, list[Pick]]:
    """Return what is shown for each head, strongest first; a head without any value has no example.

    An example is shown once for a head: where there are fewer than three times `size`, the strongest are chosen first,
    then the weakest, then those nearest to the median.
    """
    leaf = state.leaves[LEAF]
    assert isinstance(leaf, Extremes)
    layers, heads = (list(state.labels[axis]) for axis in ("layer", "head"))
    cells = ((row, column) for row in range(len(layers)) for column in range(len(heads)))
    return {
        (int(layers[row]), int(heads[column])): _pick_for_head(leaf, (slice(None), row, column), size, sample)
        for row, column in cells
    }


def _pick_for_head(leaf: Extremes, cell: tuple[slice, int, int], size: int, sample: Array) -> list[Pick]:
    values = leaf.sample[cell]
    known = ~np.isnan(values)
    sampled = dict(zip(sample[known].tolist(), values[known].tolist(), strict=True))
    strongest = _read_ranks(leaf.largest[cell], leaf.largest_at[cell])
    weakest = {
        at: x for at, x in _read_ranks(leaf.smallest[cell], leaf.smallest_at[cell]).items() if at not in strongest
    }
    rest = {at: value for at, value in sampled.items() if at not in strongest and at not in weakest}
    middle = float(np.median(list(sampled.values()))) if sampled else 0.0
    nearest = sorted(rest, key=lambda at: (abs(rest[at] - middle), at))[:size]
    median = {at: rest[at] for at in sorted(nearest, key=lambda at: (-rest[at], at))}
    groups = zip(GROUPS, (strongest, median, weakest), strict=True)
    numbers = np.array(list(sampled.values()))
    return [
        Pick(at, group, value, float((numbers < value).mean()) if len(numbers) else 0.0)
        for group, chosen in groups
        for at, value in chosen.items()
    ]


def _read_ranks(values: Array, at: Array) -> dict[int, float]:
    """Return values by position, without what stands for none."""
    return {int(place): float(value) for place, value in zip(at, values, strict=True) if place >= 0}


def _check_axes(state: State, rows: Rows) -> None:
    if rows.values.ndim != 3:
        axes = ", ".join(axis for axis in state.labels if axis not in ("layer", "head"))
        raise InputError(
            f"activity='{state.spec}' has several values for a head, along {axes}, so examples cannot be sorted by it. "
            "Give a statistic with one number for each head, such as activity, entropy or peak."
        )


def _check_heads(states: Mapping[str, State]) -> None:
    (first, expected), *rest = states.items()
    for lens, state in rest:
        if list(state.labels["head"]) != list(expected.labels["head"]):
            raise InputError(
                f"The lenses '{first}' and '{lens}' have different heads: one of them merges those of a layer. Give "
                "lenses with a map for each head, such as raw, effective and norm, or one lens alone."
            )
