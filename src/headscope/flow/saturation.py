"""How many maximum flows are as large as they can be, whatever the layers between: what a flow map no longer says."""

import numpy as np
from jaxtyping import Bool, Float

SAME = 1e-9
"""Difference below which two flows count as equal; the solver is exact to 1e-12 for each token of a level."""


def share_at_bound(
    flows: Float[np.ndarray, "query key"],
    top: Float[np.ndarray, "query key"],
    lowest: Float[np.ndarray, "query key"],
    visible: Bool[np.ndarray, "query key"],
) -> float:
    """Return the share of pairs whose flow is all that leaves the source, or all that enters the sink.

    `top` and `lowest` are the edges of the uppermost and of the lowest layer. Only visible pairs count.

    >>> edges = np.full((2, 2), 0.5)
    >>> share_at_bound(np.ones((2, 2)), edges, edges, np.full((2, 2), True))
    1.0
    """
    bound = np.minimum(top.sum(1)[:, None], lowest.sum(0))
    return _mean((flows >= bound - SAME)[visible])


def share_same_for_sources(flows: Float[np.ndarray, "query key"], visible: Bool[np.ndarray, "query key"]) -> float:
    """Return the share of tokens that receive the same flow from every source; NaN if no token has two sources.

    >>> share_same_for_sources(np.array([[0.7, 0.3], [0.7, 0.4]]), np.full((2, 2), True))
    0.5
    """
    largest = np.where(visible, flows, -np.inf).max(0)
    smallest = np.where(visible, flows, np.inf).min(0)
    shared = visible.sum(0) > 1
    return _mean((largest - smallest <= SAME)[shared])


def _mean(flags: Bool[np.ndarray, " case"]) -> float:
    return float(flags.mean()) if flags.size else float("nan")
