"""Maximum flows of single pairs of a layered graph: which to solve, and what the compiled solver reads."""

import numpy as np
from jaxtyping import Bool, Float

from headscope.flow.dinic import fill_flows
from headscope.flow.reach import SMALLEST_CAPACITY, find_reachable_nodes


def solve_pairs(
    layers: Float[np.ndarray, "layer query key"],
    bounds: Float[np.ndarray, "query key"],
    wanted: Bool[np.ndarray, "query key"],
) -> Float[np.ndarray, "query key"]:
    """Return the maximum flow from each query of the top level to each input token, where it is `wanted`, else 0.

    `layers` are the capacities of edges, the lowest layer first, at least two. `bounds` are upper bounds of the flows;
    a flow that meets its bound is proved maximal at once, so tight ones save time, and infinite ones are right too.
    """
    if not len(layers) > 1 or not layers.shape[1:] == bounds.shape == wanted.shape:
        raise ValueError(
            f"{layers.shape} layers do not have bounds {bounds.shape} of pairs {wanted.shape}, or are less than two."
        )
    flows = np.zeros(bounds.shape)
    wanted = wanted & (bounds > SMALLEST_CAPACITY)
    if wanted.any():
        most = min(layers[0].sum(0).max(), layers[-1].sum(1).max())  # what flows along a wider edge would be rounded
        layers = np.minimum(np.ascontiguousarray(layers, dtype=np.float64), most)
        order = np.argsort(-layers, axis=2, kind="stable")
        into_order = np.argsort(-layers[0].T, axis=1, kind="stable")
        counts = np.count_nonzero(layers > SMALLEST_CAPACITY, axis=2)
        upside_down = np.ascontiguousarray(layers[::-1].transpose(0, 2, 1))
        to_sink = np.ascontiguousarray(find_reachable_nodes(upside_down)[::-1])
        fill_flows(layers, order, counts, into_order, find_reachable_nodes(layers), to_sink, bounds, wanted, flows)
    return flows
