"""Exact maximum flow from the positions of a layer to the input tokens.

Depth 1 is the matrix of edges itself, and depth 2 a sum of minima. Deeper flows are found in three steps:

1. All layers: upper and lower bounds from the flows one layer below. On trained encoders they meet at all pairs from
   about the sixth layer on, because there every flow is as large as the edges into the sink allow.
2. Only the last layer: if a source can spread one unit evenly over the nodes of a middle level, and a sink can collect
   all that the edges into it allow from nodes that hold equal amounts, the two flows joined are a flow of the pair that
   no flow exceeds. That takes 2·n problems of half the depth in place of n².
3. All other pairs: Dinic's algorithm, which stops where it meets the upper bound.

Flows are exact up to 1e-12 for each token of a level, in float64: one that is within 1e-12 of its upper bound counts as
maximal, and bounds are sums over tokens. Capacities up to 1e-15 count as none. Pairs are dealt out to as many threads
as torch has.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from headscope.core.compiled import compiled, require_compiler
from headscope.core.errors import InputError
from headscope.core.progress import format_duration, is_part_of_run, print_status, show_progress
from headscope.flow.dinic import TOLERANCE, fill_flows
from headscope.flow.network import Array, Flags, Indices
from headscope.flow.reach import SMALLEST_CAPACITY, find_reachable_nodes

ONE_PART, FEW_PARTS, PARTS = 1e5, 5e7, 64
"""Nodes of all pairs together up to which a problem is one part, or one for each thread; parts of a larger one."""
LONG = 5.0
"""Seconds from which on it is said how long a map takes, and how far it is."""


def flow_maps(
    layers: Float[np.ndarray, "layer query key"],
    tops: Sequence[Float[np.ndarray, "head query key"]] | None = None,
) -> list[Float[np.ndarray, "head query key"]]:
    """Return the maximum flow from every position above each layer to every input token, one array per layer.

    `layers` are capacities of edges, the lowest layer first. `tops` has other edges for the uppermost layer of each
    flow, such as those of single heads; by default there is one head, the layer itself.

    >>> [maps.shape for maps in flow_maps(np.full((3, 4, 4), 0.25))]
    [(1, 4, 4), (1, 4, 4), (1, 4, 4)]
    """
    layers = _check(layers)
    tops = None if tops is None else _check_tops(tops, layers)
    maps: list[Array] = []
    below = _Below()
    for index, layer in enumerate(layers):
        flow, bound = below.solve(layer)
        heads = [flow] if tops is None else [below.solve(head)[0] for head in tops[index]]
        maps.append(np.stack(heads))
        below.add(layer, flow, bound)
    return maps


def flow_map(
    layers: Float[np.ndarray, "layer query key"], sources: Sequence[int] | None = None
) -> Float[np.ndarray, "source key"]:
    """Return the maximum flow through all layers, from every position on top or from some, to every input token.

    `sources` are the positions whose rows are returned, in this order; the layers between are not computed.

    >>> layers = np.random.default_rng(0).dirichlet(np.ones(5), size=(4, 5))
    >>> np.allclose(flow_map(layers), flow_maps(layers)[-1], atol=1e-12)
    True
    """
    layers = _check(layers)
    rows = np.arange(layers.shape[1]) if sources is None else _check_sources(sources, layers.shape[1])
    wanted = np.zeros(layers.shape[1:], dtype=bool)
    wanted[rows] = True
    if len(layers) < 3:  # a matrix of edges, or a sum of minima: the bounds are the flows
        flows = _Below.from_layers(layers[:-1]).solve(layers[-1])[0]
        return np.asarray(flows[rows])
    flows = np.zeros(layers.shape[1:])
    if len(layers) > 3 and find_reachable_nodes(layers[len(layers) // 2 :])[0].all():
        flows, proved = prove_by_halves(layers, wanted)
        wanted &= ~proved
    if wanted.any():
        flows = np.where(wanted, solve_pairs(layers, bound_flows(layers), wanted), flows)
    return np.asarray(flows[rows])


def prove_by_halves(
    layers: Float[np.ndarray, "layer query key"], wanted: Bool[np.ndarray, "query key"]
) -> tuple[Float[np.ndarray, "query key"], Bool[np.ndarray, "query key"]]:
    """Return flows from sources to sinks, and which of them are proved maximal by way of a middle level.

    A source that can bring 1/n to each node of the middle level, and a sink that can collect its bound c ≤ 1 from c/n
    at each node, have a flow of c between them.
    """
    size, middle = layers.shape[1], len(layers) // 2
    into_sink = np.minimum(layers[0].sum(0), 1)
    collector = np.zeros((1, size, size))  # an extra layer: one sink takes at most 1/n from each middle node
    collector[0, :, 0] = 1 / size
    above = np.concatenate([collector, layers[middle:]])
    starts = np.zeros((size, size), dtype=bool)
    starts[:, 0] = wanted.any(1)
    spreads = solve_pairs(above, np.ones((size, size)), starts)[:, 0] >= 1 - TOLERANCE
    even = np.repeat(into_sink[:, None] / size, size, 1)  # the source t holds what the sink t is to collect
    below = np.concatenate([layers[:middle], even[None]])
    collected = solve_pairs(below, np.diag(into_sink), np.diag(wanted.any(0) & spreads.any())).diagonal()
    collects = collected >= into_sink - TOLERANCE
    bound = np.minimum(layers[0].sum(0), layers[-1].sum(1)[:, None])
    proved = spreads[:, None] & collects & (into_sink >= bound - TOLERANCE)
    return np.where(proved, bound, 0), proved


def bound_flows(layers: Float[np.ndarray, "layer query key"]) -> Float[np.ndarray, "query key"]:
    """Return upper bounds of the flows through all layers, from bounds of the layers below."""
    below = _Below()
    for layer in layers[:-1]:
        below.add(layer, *below.bound(layer))
    return below.bound(layers[-1])[0]


class _Below:
    """The layers below, with their flows: what the flow through one more layer is computed from."""

    def __init__(self) -> None:
        self.layers: list[Array] = []
        self.flow: Array = np.empty(0)  # from each node on top to each input token, or an upper bound of it
        self.into_first: Array = np.empty(0)  # upper bound of the flow to the nodes above the lowest layer

    @classmethod
    def from_layers(cls, layers: Array) -> "_Below":
        below = cls()
        for layer in layers:
            below.add(layer, *below.solve(layer))
        return below

    def add(self, layer: Array, flow: Array, into_first: Array) -> None:
        self.layers.append(layer)
        self.flow, self.into_first = flow, into_first

    def bound(self, top: Array) -> tuple[Array, Array]:
        """Return upper bounds of the flow through one more layer: to the input tokens, and to the level above them."""
        if not self.layers:
            return top, np.eye(len(top))
        if len(self.layers) == 1:
            return sum_minima(top, self.layers[0]), top
        reach = find_reachable_nodes(np.stack([*self.layers[2:], top]))[0]
        into_nodes = self.layers[1].sum(0) if reach.all() else reach @ self.layers[1]
        into_first = np.minimum(sum_minima(top, self.into_first), into_nodes)
        return np.minimum(sum_minima(top, self.flow), sum_minima(into_first, self.layers[0])), into_first

    def solve(self, top: Array) -> tuple[Array, Array]:
        """Return the flow through one more layer, and the bound of the flow to the level above the input tokens."""
        upper, into_first = self.bound(top)
        if len(self.layers) < 2:
            return upper, into_first
        wanted = mix_flows(top, self.flow) < upper - TOLERANCE
        if wanted.any():
            upper = np.where(wanted, solve_pairs(np.stack([*self.layers, top]), upper, wanted), upper)
        return upper, into_first


def _check_sources(sources: Sequence[int], size: int) -> Indices:
    """Return the positions of sources as an array; raise InputError for one outside of the sequence."""
    rows = np.asarray(sources)
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= size:
        raise InputError(f"sources are positions from 0 to {size - 1}, at least one, but got {list(sources)}.")
    return rows


def _check_tops(tops: Sequence[Any], layers: Array) -> list[Array]:
    """Return the edges of heads as float64; raise InputError if their shapes do not fit the layers."""
    checked = [_check(heads) for heads in tops]
    if len(checked) != len(layers) or any(heads.shape[1:] != layers.shape[1:] for heads in checked):
        raise InputError(
            f"Flow needs edges of heads for each of {len(layers)} layers, of shape [head, {layers.shape[1]}, "
            f"{layers.shape[2]}], but got {[list(heads.shape) for heads in checked]}."
        )
    return checked


def _check(layers: Any) -> Array:
    """Return the layers as float64; raise InputError for capacities that are negative or not finite."""
    require_compiler("Attention flow")
    array = np.ascontiguousarray(layers, dtype=np.float64)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or not array.size:
        raise InputError(f"Flow needs edges of shape [layer, token, token], but got {list(array.shape)}.")
    if not np.isfinite(array).all() or (array < 0).any():
        wrong = array[~np.isfinite(array) | (array < 0)]
        what = "NaN" if np.isnan(wrong).any() else f"a capacity of {wrong[0]:.3g}"
        signed = np.isfinite(wrong).all()
        advice = "Take absolute values or set negative weights to 0 first" if signed else "Leave that input out"
        raise InputError(
            f"The capacities of a flow are finite numbers that are at least 0, but these have {what}. {advice}."
        )
    return np.where(array > SMALLEST_CAPACITY, array, 0)


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
        # which nodes reach a sink: the same search, with the network turned over
        upside_down = np.ascontiguousarray(layers[::-1].transpose(0, 2, 1))
        to_sink = np.ascontiguousarray(find_reachable_nodes(upside_down)[::-1])
        reach = find_reachable_nodes(layers)
        _fill_in_parts(
            partial(fill_flows, layers, order, counts, into_order, reach, to_sink, bounds), wanted, flows, len(layers)
        )
    return flows


def _fill_in_parts(fill: Callable[[Flags, Array], None], wanted: Flags, flows: Array, depth: int) -> None:
    """Fill wanted flows, sinks in turn to each part, on the threads of torch; show progress where it takes long.

    Every part has sinks from all over the text, so the first part says how long the others will take.
    """
    size, threads = len(wanted), torch.get_num_threads()
    pairs = int(np.count_nonzero(wanted))
    nodes = pairs * size * depth
    parts = min(size, 1 if nodes <= ONE_PART else threads if nodes <= FEW_PARTS else PARTS)
    if parts == 1:
        fill(wanted, flows)
        return
    start, pool = monotonic(), ThreadPoolExecutor(threads)
    try:
        masks = [wanted & (np.arange(size) % parts == part) for part in range(parts)]
        running = {pool.submit(fill, mask, flows): int(np.count_nonzero(mask)) for mask in masks}
        finished = as_completed(running)
        first = next(finished)
        seconds = (monotonic() - start) * parts / threads
        quiet = seconds < LONG or is_part_of_run()
        if not quiet:
            print_status(f"Flow through {depth} layers of {size:,} tokens: about {format_duration(seconds)}.")
        with show_progress(pairs, unit="flows", quiet=quiet) as advance:
            advance(running[first])
            first.result()
            for part in finished:
                part.result()
                advance(running[part])
    finally:
        pool.shutdown(cancel_futures=True)


@compiled
def sum_minima(upper: Array, lower: Array) -> Array:
    """Return Σ_i min(upper[s, i], lower[i, t]): the maximum flow through two layers, and a bound through more.

    >>> sum_minima(np.array([[0.7, 0.3]]), np.array([[0.5], [0.4]]))
    array([[0.8]])
    """
    sums = np.zeros((upper.shape[0], lower.shape[1]))
    for source in range(upper.shape[0]):
        for node in range(upper.shape[1]):
            capacity = upper[source, node]
            if capacity > 0:
                for sink in range(lower.shape[1]):
                    sums[source, sink] += min(capacity, lower[node, sink])
    return sums


@compiled
def mix_flows(upper: Array, lower: Array) -> Array:
    """Return the largest mixture of the flows `lower` of the nodes below, a lower bound of the flow of each source.

    The shares of the mixture sum to at most 1, and the part of a node is at most the capacity of the edge to it. The
    largest mixture takes the largest flows first.

    >>> mix_flows(np.array([[0.7, 0.3]]), np.array([[0.5], [0.4]]))
    array([[0.5]])
    """
    mixtures = np.zeros((upper.shape[0], lower.shape[1]))
    for sink in range(lower.shape[1]):
        order = np.argsort(-lower[:, sink])
        for source in range(upper.shape[0]):
            share = 1.0
            for node in order:
                flow, capacity = lower[node, sink], upper[source, node]
                if flow <= 0:
                    break
                if capacity >= share * flow:
                    mixtures[source, sink] += share * flow
                    break
                share -= capacity / flow
                mixtures[source, sink] += capacity
    return mixtures
