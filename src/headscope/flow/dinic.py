"""Maximum flow between single nodes of a layered graph, by Dinic's algorithm on dense arrays.

Level 0 holds the input tokens; the edges of layer k lead from level k + 1 down to level k, and sources are on top. All
paths have the same length, so the first blocking flow needs no search; above the two lowest layers it takes the widest
edges first. Where it meets a known upper bound it is proved maximal; else the search for paths goes on until there is
none, which proves it.

The code is compiled: that takes about 10 s at the first call after an install, and less than 1 s to read it from disk.
"""

from functools import partial

import numpy as np

from headscope.core.compiled import compiled
from headscope.flow.network import Array, Flags, Flow, Indices, Network, Path, Search, Work
from headscope.flow.reach import SMALLEST_CAPACITY

TOLERANCE = 1e-12  # how close to an upper bound a flow is maximal
SHORTER = 4  # a list of nodes that is so many times as short as that of the edges left is searched first

inlined = partial(compiled, inline=True)


@compiled
def fill_flows(
    capacity: Array,
    order: Indices,
    counts: Indices,
    into_order: Indices,
    from_source: Flags,
    to_sink: Flags,
    bounds: Array,
    wanted: Flags,
    flows: Array,
) -> None:
    """Fill the maximum flows from each query of the top level to each input token, where they are wanted.

    For what the arrays hold see `Network`. A flow that meets its bound is proved maximal at once.
    """
    network = Network(capacity, capacity.reshape(-1), order, counts, into_order, from_source, to_sink)
    depth, size, _ = capacity.shape
    by_node, by_rank = np.empty((5, depth + 1, size), np.int64), np.empty((4, (depth + 1) * size), np.int64)
    amounts, by_edge = np.empty((2, (depth + 1) * size)), np.empty((2, capacity.size), np.int64)
    carries, first_carrier = np.zeros(capacity.shape, np.bool_), np.full((depth, size), -1, np.int64)
    left, counts_of_carriers = capacity.copy(), np.zeros(2, np.int64)
    flat_left, flat_carries, into_sink = left.reshape(-1), carries.reshape(-1), np.empty(size)
    flow = Flow(
        left, flat_left, into_sink, carries, flat_carries, counts_of_carriers, by_edge[0], by_edge[1], first_carrier
    )
    waiting_count, labelled_count = np.zeros(depth + 2, np.int64), np.zeros(depth + 1, np.int64)
    search = Search(
        by_node[0], by_node[1], waiting_count, by_rank[0], by_rank[1], by_node[3], by_node[4], labelled_count
    )
    path = Path(by_rank[2], by_rank[3], amounts[0], amounts[1], by_node[2], np.empty(size, np.int64))
    work = Work(network, flow, search, path)
    for sink in range(size):
        for source in range(size):
            if wanted[source, sink]:
                flows[source, sink] = _solve_pair(work, source, sink, bounds[source, sink])


@inlined
def _solve_pair(work: Work, source: int, sink: int, bound: float) -> float:
    """Return the maximum flow of one pair; what is left of the capacities is restored."""
    total = 0.0
    _label_levels(work, source, sink)
    while True:
        total += _send_blocking_flow(work, source, sink, bound - total)
        if total >= bound - TOLERANCE or not _label_distances(work, source):
            break
    _restore(work)
    return total


@inlined
def _label_levels(work: Work, source: int, sink: int) -> None:
    """Label each node with its level: the distance to the sink while nothing flows."""
    network, flow, search = work.network, work.flow, work.search
    depth, size, _ = network.capacity.shape
    for level in range(1, depth + 1):
        for node in range(size):
            on_the_way = network.from_source[level, source, node] and network.to_sink[level, sink, node]
            search.distance[level, node] = level if on_the_way else -1
    for node in range(size):
        flow.into_sink[node] = network.capacity[0, node, sink]


@inlined
def _restore(work: Work) -> None:
    """Set what is left of the edges that have carried flow to their capacity."""
    network, flow = work.network, work.flow
    for carrier in range(flow.carrier_count[0]):
        edge = flow.carrier_edge[carrier]
        flow.flat_left[edge] = network.flat_capacity[edge]
        flow.flat_carries[edge] = False
    if flow.carrier_count[1] > 0:
        flow.first_carrier[:] = -1
    flow.carrier_count[:] = 0


@inlined
def _link_carriers(work: Work) -> None:
    """Link the edges that have carried flow to the others of their query; before a search, no one asks for them."""
    flow, size = work.flow, work.network.capacity.shape[1]
    for carrier in range(flow.carrier_count[1], flow.carrier_count[0]):
        row = flow.carrier_edge[carrier] // size
        layer, query = row // size, row % size
        flow.next_carrier[carrier], flow.first_carrier[layer, query] = flow.first_carrier[layer, query], carrier
    flow.carrier_count[1] = flow.carrier_count[0]


@inlined
def _label_distances(work: Work, source: int) -> bool:
    """Search from the sink through what is left; return whether the source is found.

    A path goes up along edges, and down against edges that carry flow; each step down makes it longer by two. Nodes are
    found in the order of their steps down.
    """
    search, depth = work.search, len(work.network.capacity)
    _link_carriers(work)
    start, end, detour = 0, _search_upwards(work, source), 0
    while start < end and search.distance[depth, source] < 0:
        last, detour = end, detour + 2
        for index in range(start, last):
            end = _search_below(work, search.level[index], search.node[index], detour, end)
        start, index = last, last
        while index < end:
            end = _search_above(work, search.level[index], search.node[index], detour, end)
            index += 1
    return bool(search.distance[depth, source] >= 0)


@inlined
def _search_upwards(work: Work, source: int) -> int:
    """Find the nodes with a path to the sink that goes up from it only; return how many there are.

    Distances never decrease, so these are nodes whose distance was their level before.
    """
    network, search = work.network, work.search
    depth, size, _ = network.capacity.shape
    distance, end = search.distance, 0
    for level in range(1, depth):
        count = 0
        for node in range(size):
            reached = distance[level, node] == level and _has_way_down(work, level, node)
            distance[level, node] = level if reached else -1
            if reached:
                search.level[end], search.node[end] = level, node
                end += 1
            elif network.from_source[level, source, node]:
                search.waiting[level, count] = node
                count += 1
        search.waiting_count[level] = count
    distance[depth, source], search.waiting[depth, 0], search.waiting_count[depth] = -1, source, 1
    return end


@inlined
def _has_way_down(work: Work, level: int, node: int) -> bool:
    network, flow, search = work.network, work.flow, work.search
    if level == 1:
        return bool(flow.into_sink[node] > SMALLEST_CAPACITY)
    for rank in range(network.counts[level - 1, node]):
        key = network.order[level - 1, node, rank]
        if search.distance[level - 1, key] >= 0 and flow.left[level - 1, node, key] > SMALLEST_CAPACITY:
            return True
    return False


@inlined
def _search_below(work: Work, level: int, query: int, detour: int, end: int) -> int:
    """Find the nodes below a node to which it sends flow; return how many were found in all."""
    network, flow, search, layer = work.network, work.flow, work.search, level - 1
    carrier = flow.first_carrier[layer, query]
    while carrier >= 0:
        key = flow.carrier_edge[carrier] % network.capacity.shape[1]
        if search.distance[layer, key] < 0:
            carried = network.capacity[layer, query, key] - flow.left[layer, query, key]
            if carried > SMALLEST_CAPACITY:
                search.distance[layer, key] = layer + detour
                search.level[end], search.node[end] = layer, key
                end += 1
        carrier = flow.next_carrier[carrier]
    return end


@inlined
def _search_above(work: Work, level: int, key: int, detour: int, end: int) -> int:
    """Find the nodes above a node that can send it more; return how many were found in all."""
    left, search, upper, count = work.flow.left, work.search, level + 1, 0
    for rank in range(search.waiting_count[upper]):
        query = search.waiting[upper, rank]
        if search.distance[upper, query] >= 0:
            continue
        if left[level, query, key] > SMALLEST_CAPACITY:
            search.distance[upper, query] = upper + detour
            search.level[end], search.node[end] = upper, query
            end += 1
        else:
            search.waiting[upper, count] = query
            count += 1
    search.waiting_count[upper] = count
    return end


@inlined
def _send_blocking_flow(work: Work, source: int, sink: int, wanted: float) -> float:
    """Send flow along paths of decreasing distance, depth first, until enough is sent or no path is left; return it."""
    network, search, path = work.network, work.search, work.path
    open_count, last = _find_open_keys(work, sink), 0
    _list_labelled(work)
    path.next_edge[:] = 0
    path.level[0], path.node[0], path.room[0], path.sent[0] = len(network.capacity), source, wanted, 0.0
    while True:
        level, node = path.level[last], path.node[last]
        if search.distance[level, node] == 2:
            open_count = _send_to_sink(work, node, last, open_count)
        elif path.room[last] > SMALLEST_CAPACITY:
            next_node, path.level[last + 1], width = _find_step(work, level, node)
            if next_node >= 0:
                last += 1
                path.node[last], path.room[last], path.sent[last] = next_node, min(path.room[last - 1], width), 0.0
                continue
        if last == 0:
            return float(path.sent[0])
        if path.room[last] > SMALLEST_CAPACITY:  # no way on from here
            _drop(work, level, node)
        if path.sent[last] > 0:
            _send_along_edge(work, last)
        last -= 1
        if last == 0 and path.room[0] <= TOLERANCE:
            return float(path.sent[0])


@inlined
def _find_open_keys(work: Work, sink: int) -> int:
    """List the nodes above the sink that can send something to it, the widest edge first; return how many there are."""
    network, search, path, count = work.network, work.search, work.path, 0
    for rank in range(network.into_order.shape[1]):
        key = network.into_order[sink, rank]
        if search.distance[1, key] == 1:
            path.open_keys[count] = key
            count += 1
    return count


@inlined
def _list_labelled(work: Work) -> None:
    """List the nodes of each level that have a distance."""
    search = work.search
    for level in range(len(work.network.capacity) + 1):
        count = 0
        for node in range(search.distance.shape[1]):
            if search.distance[level, node] >= 0:
                search.labelled[level, count], search.place[level, node] = node, count
                count += 1
        search.labelled_count[level] = count


@inlined
def _drop(work: Work, level: int, node: int) -> None:
    """Take the distance from a node that no path leads on from."""
    search = work.search
    search.distance[level, node] = -1
    last = search.labelled_count[level] - 1
    place, moved = search.place[level, node], search.labelled[level, last]
    search.labelled[level, place], search.place[level, moved] = moved, place
    search.labelled_count[level] = last


@inlined
def _find_step(work: Work, level: int, node: int) -> tuple[int, int, float]:
    """Return the next node of a path, its level, and how much the edge to it can carry; -1 where there is none."""
    network, flow, search, path = work.network, work.flow, work.search, work.path
    nearer, edge, layer = search.distance[level, node] - 1, path.next_edge[level, node], level - 1
    down = network.counts[layer, node] if level > 1 else 0
    if edge < down and SHORTER * search.labelled_count[layer] < down - edge:
        for rank in range(search.labelled_count[layer]):
            key = search.labelled[layer, rank]
            if search.distance[layer, key] == nearer and flow.left[layer, node, key] > SMALLEST_CAPACITY:
                return key, layer, flow.left[layer, node, key]
        edge = down
    while edge < down:
        key = network.order[layer, node, edge]
        if search.distance[layer, key] == nearer and flow.left[layer, node, key] > SMALLEST_CAPACITY:
            path.next_edge[level, node] = edge
            return key, layer, flow.left[layer, node, key]
        edge += 1
    if nearer > level and level + 1 < len(network.capacity):  # a way on may lead upwards
        for query in range(edge - down, network.capacity.shape[1]):
            if search.distance[level + 1, query] == nearer:
                carried = network.capacity[level, query, node] - flow.left[level, query, node]
                if carried > SMALLEST_CAPACITY:
                    path.next_edge[level, node] = edge
                    return query, level + 1, carried
            edge += 1
    path.next_edge[level, node] = edge
    return -1, -1, 0.0


@inlined
def _send_to_sink(work: Work, node: int, last: int, open_count: int) -> int:
    """Send from the last node of the path, on level 2, what it has room for; return how many keys are open then."""
    flow, path, index = work.flow, work.path, 0
    while index < open_count and path.room[last] > SMALLEST_CAPACITY:
        key = path.open_keys[index]
        width = flow.left[1, node, key]
        index += 1
        if width > SMALLEST_CAPACITY:
            _mark_carrier(work, 1, node, key)
            amount = min(width, flow.into_sink[key], path.room[last])
            flow.left[1, node, key] = width - amount
            flow.into_sink[key] -= amount
            path.room[last] -= amount
            path.sent[last] += amount
            if flow.into_sink[key] <= SMALLEST_CAPACITY:
                index, open_count = index - 1, open_count - 1
                path.open_keys[index] = path.open_keys[open_count]
    return open_count


@inlined
def _send_along_edge(work: Work, last: int) -> None:
    """Send along the last edge of the path what was sent from its last node."""
    left, path, amount = work.flow.left, work.path, work.path.sent[last]
    level, node, upper, parent = path.level[last], path.node[last], path.level[last - 1], path.node[last - 1]
    path.room[last - 1] -= amount
    path.sent[last - 1] += amount
    if level > upper:
        left[upper, node, parent] += amount
    else:
        left[level, parent, node] -= amount
        _mark_carrier(work, level, parent, node)


@inlined
def _mark_carrier(work: Work, layer: int, query: int, key: int) -> None:
    """Add an edge to those that have carried flow, if it is new."""
    flow, size = work.flow, work.network.capacity.shape[1]
    if not flow.carries[layer, query, key]:
        flow.carries[layer, query, key] = True
        flow.carrier_edge[flow.carrier_count[0]] = (layer * size + query) * size + key
        flow.carrier_count[0] += 1
