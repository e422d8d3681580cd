"""Maximum flow between single nodes of a layered graph, by Dinic's algorithm on dense arrays.

Level 0 holds the input tokens; the edges of layer k lead from level k + 1 down to level k, and sources are on top. All
paths have the same length, so the first blocking flow needs no search; it goes along the widest edges first. Where it
meets a known upper bound it is proved maximal; else the search for paths goes on until there is none, which proves it.

The code is compiled: that takes about 10 s at the first call after an install, and less than 1 s to read it from disk.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from headscope.core.compiled import compiled

Array = np.ndarray[Any, np.dtype[np.float64]]
Indices = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

SMALLEST_CAPACITY = 1e-15  # what is less counts as no capacity
TOLERANCE = 1e-12  # how close to an upper bound a flow is maximal


def solve_pairs(
    layers: Float[np.ndarray, "layer query key"],
    bounds: Float[np.ndarray, "query key"],
    wanted: Bool[np.ndarray, "query key"],
) -> Float[np.ndarray, "query key"]:
    """Return the maximum flow from each query of the top level to each input token, where it is `wanted`, else 0.

    `layers` are the capacities of edges, the lowest layer first. `bounds` are upper bounds of the flows; a flow that
    meets its bound is proved maximal at once, so tight ones save time, and infinite ones are right too.
    """
    flows = np.zeros(bounds.shape)
    if wanted.any():
        layers = np.ascontiguousarray(layers, dtype=np.float64)
        order = np.argsort(-layers, axis=2, kind="stable")
        _solve(_Network(layers, order, find_reachable_nodes(layers)), bounds, wanted, flows, _make_work(layers))
    return flows


def find_reachable_nodes(layers: Float[np.ndarray, "layer query key"]) -> Bool[np.ndarray, "level query key"]:
    """Return for each level from 0 to the top which of its nodes can be reached from each node of the top level."""
    reach = np.empty((len(layers) + 1, *layers.shape[1:]), dtype=np.bool_)
    reach[-1] = np.eye(layers.shape[1], dtype=np.bool_)
    for level in range(len(layers) - 1, -1, -1):
        edges = layers[level] > SMALLEST_CAPACITY
        reach[level] = True if edges.all() else _compose(reach[level + 1], edges)
    return reach


@compiled
def _compose(upper: Flags, lower: Flags) -> Flags:
    """Return which nodes are reached in two steps."""
    reach = np.zeros(upper.shape, np.bool_)
    for source in range(upper.shape[0]):
        for node in range(upper.shape[1]):
            if upper[source, node]:
                reach[source] |= lower[node]
    return reach


class _Network(NamedTuple):
    """The graph, as compiled code reads it."""

    capacity: Array  # layer query key
    order: Indices  # layer query rank: keys by decreasing capacity
    reach: Flags  # level source node


class _Work(NamedTuple):
    """Arrays that the searches write to, allocated once for all pairs."""

    left: Array  # layer query key: capacity that is left
    keys: Indices  # layer query rank: keys that lead to the sink, by decreasing capacity
    counts: Indices  # layer query: how many they are
    distance: Indices  # level node: length of the shortest path to the sink, -1 without one
    waiting: Indices  # level rank: nodes that the search has not found yet
    waiting_count: Indices  # level
    queue: Indices
    next_edge: Indices  # level node: the first edge that is not used up
    levels: Indices  # of the nodes of the path
    nodes: Indices  # of the path
    room: Array  # along the path: how much can still be sent as far as this node
    changed: Indices  # edges whose capacity has changed, by index


def _make_work(layers: Array) -> _Work:
    depth, size, _ = layers.shape
    nodes = (depth + 1, size)

    def indices(*shape: int) -> Indices:
        return np.empty(shape, np.int64)

    return _Work(
        left=layers.copy(),
        keys=indices(*layers.shape),
        counts=indices(depth, size),
        distance=indices(*nodes),
        waiting=indices(*nodes),
        waiting_count=indices(depth + 1),
        queue=indices((depth + 1) * size),
        next_edge=indices(*nodes),
        levels=indices((depth + 1) * size),
        nodes=indices((depth + 1) * size),
        room=np.empty((depth + 1) * size),
        changed=indices(layers.size),
    )


@compiled
def _solve(network: _Network, bounds: Array, wanted: Flags, flows: Array, work: _Work) -> None:
    """Fill `flows` where it is wanted."""
    complete = False
    for sink in range(wanted.shape[1]):
        if not wanted[:, sink].any():
            continue
        complete = _find_edges(network, sink, work, complete)
        for source in range(wanted.shape[0]):
            if wanted[source, sink]:
                flows[source, sink] = _solve_pair(network, source, sink, bounds[source, sink], work)


@compiled
def _find_edges(network: _Network, sink: int, work: _Work, complete: bool) -> bool:
    """Find for each node the edges through which the sink can be reached, by decreasing capacity.

    Return whether it is reached from all nodes above the lowest layer. If that was so for the last sink too
    (`complete`), the edges of the other layers are the same.
    """
    depth, size, _ = network.capacity.shape
    for query in range(size):
        work.keys[0, query, 0] = sink
        work.counts[0, query] = network.capacity[0, query, sink] > SMALLEST_CAPACITY
    reached: bool = work.counts[0].all()
    if reached and complete:
        return True
    for layer in range(1, depth):
        for query in range(size):
            count = 0
            for rank in range(size):
                key = network.order[layer, query, rank]
                if network.capacity[layer, query, key] <= SMALLEST_CAPACITY:
                    break
                if work.counts[layer - 1, key] > 0:
                    work.keys[layer, query, count] = key
                    count += 1
            work.counts[layer, query] = count
    return reached


@compiled
def _solve_pair(network: _Network, source: int, sink: int, bound: float, work: _Work) -> float:
    """Return the maximum flow of one pair; what is left of the capacities is restored."""
    total, changes = 0.0, 0
    _label_levels(network, source, sink, work)
    while True:
        sent, changes = _send_blocking_flow(network, source, bound - total, work, changes)
        total += sent
        if total >= bound - TOLERANCE or not _label_distances(network, source, sink, work):
            break
    if changes > work.changed.size:
        work.left[:] = network.capacity
    else:
        left, capacity = work.left.reshape(-1), network.capacity.reshape(-1)
        for index in range(changes):
            edge = work.changed[index]
            left[edge] = capacity[edge]
    return total


@compiled
def _label_levels(network: _Network, source: int, sink: int, work: _Work) -> None:
    """Label each node with its level: the distance to the sink while nothing flows."""
    depth, size, _ = network.capacity.shape
    work.distance[0, :] = -1
    work.distance[0, sink] = 0
    for level in range(1, depth + 1):
        for node in range(size):
            on_the_way = network.reach[level, source, node] and work.counts[level - 1, node] > 0
            work.distance[level, node] = level if on_the_way else -1


@compiled
def _label_distances(network: _Network, source: int, sink: int, work: _Work) -> bool:
    """Search breadth first from the sink through what is left; return whether the source is found."""
    depth, size, _ = network.capacity.shape
    capacity, left, distance = network.capacity, work.left, work.distance
    for level in range(depth + 1):
        count = 0
        for node in range(size):
            distance[level, node] = -1
            if network.reach[level, source, node]:
                work.waiting[level, count] = node
                count += 1
        work.waiting_count[level] = count
    distance[0, sink] = 0
    work.queue[0], head, tail = sink, 0, 1
    while head < tail:
        level, node = divmod(work.queue[head], size)
        head += 1
        for step in (1, -1):  # from above along edges, from below against edges that carry flow
            other = level + step
            if (step == -1 and level < 2) or other > depth:
                continue
            remaining = 0
            for rank in range(work.waiting_count[other]):
                neighbour = work.waiting[other, rank]
                if step == 1:
                    room = left[level, neighbour, node]
                else:
                    room = capacity[other, node, neighbour] - left[other, node, neighbour]
                if room > SMALLEST_CAPACITY:
                    distance[other, neighbour] = distance[level, node] + 1
                    work.queue[tail] = other * size + neighbour
                    tail += 1
                    if other == depth:
                        return True
                else:
                    work.waiting[other, remaining] = neighbour
                    remaining += 1
            work.waiting_count[other] = remaining
    return False


@compiled
def _send_blocking_flow(network: _Network, source: int, wanted: float, work: _Work, changes: int) -> tuple[float, int]:
    """Send flow along paths of decreasing distance until none is left or enough has been sent, depth first."""
    depth, size, _ = network.capacity.shape
    capacity, left, keys, counts, next_edge = network.capacity, work.left, work.keys, work.counts, work.next_edge
    distance, levels, nodes, room = work.distance, work.levels, work.nodes, work.room
    total, last = 0.0, 0
    next_edge[:] = 0
    levels[0], nodes[0], room[0] = depth, source, wanted
    while True:
        level, node = levels[last], nodes[last]
        if level == 0:
            total += room[last]
            last, changes = _send_along_path(capacity, left, levels, nodes, room, last, work.changed, changes)
            if wanted - total <= TOLERANCE:
                return total, changes
            continue
        nearer, edge, down = distance[level, node] - 1, next_edge[level, node], counts[level - 1, node]
        next_node, width = -1, 0.0
        while edge < down:
            key = keys[level - 1, node, edge]
            if distance[level - 1, key] == nearer:
                width = left[level - 1, node, key]
                if width > SMALLEST_CAPACITY:
                    next_node, levels[last + 1] = key, level - 1
                    break
            edge += 1
        if next_node < 0 and nearer > level and level + 1 < depth:  # a way on may lead upwards
            for query in range(edge - down, size):
                width = capacity[level, query, node] - left[level, query, node]
                if distance[level + 1, query] == nearer and width > SMALLEST_CAPACITY:
                    next_node, levels[last + 1] = query, level + 1
                    break
                edge += 1
        next_edge[level, node] = edge
        if next_node >= 0:
            last += 1
            nodes[last], room[last] = next_node, min(room[last - 1], width)
        elif last == 0:
            return total, changes
        else:
            distance[level, node] = -1  # no way on from here
            last -= 1
            next_edge[levels[last], nodes[last]] += 1


@compiled
def _send_along_path(
    capacity: Array,
    left: Array,
    levels: Indices,
    nodes: Indices,
    room: Array,
    last: int,
    changed: Indices,
    changes: int,
) -> tuple[int, int]:
    """Send what the path has room for; return up to where the path has room left, and the number of changes."""
    size, sent, last_open = capacity.shape[1], room[last], 0
    for step in range(last - 1, -1, -1):
        level, node, other = levels[step], nodes[step], nodes[step + 1]
        if levels[step + 1] < level:
            left[level - 1, node, other] -= sent
            width = left[level - 1, node, other]
            if changes < changed.size:
                changed[changes] = ((level - 1) * size + node) * size + other
            changes += 1
        else:
            left[level, other, node] += sent
            width = capacity[level, other, node] - left[level, other, node]
        if width <= SMALLEST_CAPACITY:
            last_open = step
        room[step] -= sent
    return last_open, changes
