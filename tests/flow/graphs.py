"""Layered graphs of capacities, of the kinds that attention has."""

import networkx as nx
import numpy as np

KINDS = ("random", "uniform", "sharp", "sink", "causal", "heads", "zeros", "any_sums")


def make_graph(kind, layers, tokens, seed):
    """Capacities `layer query key`, the lowest layer first; rows sum to 1 except for the last two kinds."""
    random = np.random.default_rng(seed)
    scores = random.standard_normal((layers, tokens, tokens)) * {"uniform": 0, "sharp": 8}.get(kind, 1.5)
    if kind == "sink":
        scores[..., 0] += 8
    if kind == "heads":  # the next token in every second layer, and everywhere the first and the last, as real heads do
        near = np.eye(tokens, k=1) * 6 * (np.arange(layers) % 2)[:, None, None]
        scores = scores + near + 3 * np.isin(np.arange(tokens), (0, tokens - 1))
    if kind == "causal":
        scores = np.where(np.tril(np.ones((tokens, tokens), dtype=bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    graph = 0.5 * weights / weights.sum(-1, keepdims=True) + 0.5 * np.eye(tokens)
    if kind == "zeros":
        graph[random.random(graph.shape) < 0.5] = 0
    return graph * random.uniform(0.2, 3, (layers, tokens, 1)) if kind == "any_sums" else graph


def flow_by_networkx(graph, source, sink):
    """The maximum flow of one pair, by another's code."""
    network = nx.DiGraph()
    top = len(graph)
    network.add_nodes_from([(top, source), (0, sink)])
    for layer, query, key in zip(*graph.nonzero(), strict=True):
        network.add_edge((layer + 1, query), (layer, key), capacity=graph[layer, query, key])
    return nx.maximum_flow_value(network, (top, source), (0, sink))
