"""Maps as sparse rows: the largest weights of each row by |w|, and what is left out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.core.state import Array

UNIT = 1e-4
"""Weights are stored as whole multiples of this."""


@dataclass(frozen=True)
class SparseMap:
    """The kept weights of a map, row after row, largest first."""

    counts: Array  # kept weights of each row
    keys: Array  # of every kept weight
    weights: Array  # of every kept weight, signed
    left: Array  # Σ|w| of each row that is not kept
    received: Array  # mean weight that each key gets, over all rows
    total: float  # Σ|w| of the whole map

    @property
    def left_share(self) -> float:
        """The share of Σ|w| that is not kept."""
        return float(self.left.sum() / self.total) if self.total else 0.0

    def describe(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "counts": self.counts.tolist(),
            "keys": self.keys.tolist(),
            "weights": np.rint(self.weights.astype(float) / UNIT).astype(int).tolist(),
            "left": np.rint(self.left.astype(float) / UNIT).astype(int).tolist(),
            "received": [round(value, 6) for value in self.received.astype(float).tolist()],
            "leftShare": round(self.left_share, 5),
        }


def keep_largest(weights: Array, visible: Array, count: int, threshold: float) -> SparseMap:
    """Return the `count` largest weights of each row by |w|, from a threshold on, where a query sees the key.

    >>> sparse = keep_largest(np.array([[0.1, -0.6, 0.3]]), np.ones((1, 3), bool), 2, 0.2)
    >>> sparse.keys.tolist(), sparse.weights.tolist(), sparse.left.round(2).tolist()
    ([1, 2], [-0.6, 0.3], [0.1])
    """
    seen = np.where(visible, weights, 0.0).astype(np.float64)
    sizes = np.where(visible, np.abs(seen), -1.0)
    places = _find_largest(sizes, min(count, sizes.shape[1]))
    kept = np.take_along_axis(sizes, places, 1)
    taken = (kept >= threshold) & (kept >= 0)
    mass = np.abs(seen).sum(1)
    return SparseMap(
        counts=taken.sum(1),
        keys=places[taken],
        weights=np.take_along_axis(seen, places, 1)[taken],
        left=np.maximum(mass - np.where(taken, kept, 0.0).sum(1), 0.0),
        received=seen.mean(0),
        total=float(mass.sum()),
    )


def _find_largest(sizes: Array, count: int) -> Array:
    """Return the places of the `count` largest numbers of each row, in order; of equal ones the first come first."""
    least = -np.partition(-sizes, count - 1, axis=1)[:, count - 1 : count]
    larger, equal = sizes > least, sizes == least
    taken = larger | (equal & (equal.cumsum(1) <= count - larger.sum(1, keepdims=True)))
    places = np.nonzero(taken)[1].reshape(-1, count)
    order = np.argsort(-np.take_along_axis(sizes, places, 1), axis=1, kind="stable")
    return np.take_along_axis(places, order, 1)
