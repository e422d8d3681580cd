"""Upper and lower bounds of maximum flows through one more layer; where they meet, the flow is proved.

Let F[i, t] be the maximum flow from node i of a level to the sink t, and a[i] the capacity of the edge from a source
above to node i. The flow of the source is at most Σ min(a[i], F[i, t]). It is at least any Σ x[i] with x[i] ≤ a[i] and
Σ x[i] / F[i, t] ≤ 1, because a mixture of the flows of the nodes, with shares that sum to 1, is a flow.
"""

import numpy as np

from headscope.core.compiled import compiled
from headscope.flow.network import Array


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
