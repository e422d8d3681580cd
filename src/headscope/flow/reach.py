"""Which nodes of a layered graph can be reached from which."""

import numpy as np

from headscope.core.compiled import compiled
from headscope.flow.network import Array, Flags

SMALLEST_CAPACITY = 1e-15  # up to here it counts as none; a constant of compiled code, also in dinic.py


@compiled
def find_reachable_nodes(layers: Array) -> Flags:
    """Return for each level from 0 to the top which of its nodes can be reached from each node of the top level.

    `layers` are the capacities of edges, layer query key, the lowest layer first.

    >>> find_reachable_nodes(np.array([[[1.0, 0.0], [0.5, 0.5]]]))[0]
    array([[ True, False],
           [ True,  True]])
    """
    depth, size, _ = layers.shape
    reach = np.zeros((depth + 1, size, size), np.bool_)
    for node in range(size):
        reach[depth, node, node] = True
    for level in range(depth - 1, -1, -1):
        edges = layers[level] > SMALLEST_CAPACITY
        complete = edges.all()
        for source in range(size):
            if complete:
                reach[level, source] = reach[level + 1, source].any()
                continue
            for node in range(size):
                if reach[level + 1, source, node]:
                    for key in range(size):
                        reach[level, source, key] |= edges[node, key]
    return reach
