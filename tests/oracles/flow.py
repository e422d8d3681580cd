"""Attention flow by searching for augmenting paths in a dictionary of edges, token by token, without padding."""

from collections import deque
from functools import cache
from importlib import import_module

import torch

from headscope.core.spec import entry_name
from tests.oracles.rollout import _cut, _equal, _hide, add_residual, merge, with_measured


def oracle(trace, layer, lens):
    """The flow of one layer of every example, padded again."""
    literal = import_module(f"tests.oracles.{entry_name(type(lens.inner))}")
    maps = [literal.oracle(trace, index, lens.inner) for index in range(layer + 1)]
    heads = 1 if lens.heads == "mean" else len(trace.heads)
    result = torch.zeros(len(trace.examples), heads, *trace.visible[0].shape[1:], dtype=torch.float64)
    for row, real in enumerate(trace.queries.real):
        tokens = real.nonzero()[:, 0].tolist()
        stack = [_cut(part[row], tokens) for part in maps]
        seen = [mask[row][tokens][:, tokens].tolist() for mask in trace.visible][: layer + 1]
        lens = with_measured(lens, trace, range(layer + 1), row, tokens)
        flows = flow_of_heads(stack, seen, lens)
        if lens.receptive_field:
            uniform = flow_of_heads([[_equal(mask)] * len(stack[0]) for mask in seen], seen, lens)
            flows = [_divide(*pair) for pair in zip(flows, uniform, strict=True)]
        elif lens.normalize:
            flows = [[[flow / sum(line) for flow in line] for line in table] for table in flows]
        for head, table in enumerate(flows):
            for query, position in enumerate(tokens):
                result[row, head, position, tokens] = torch.tensor(table[query], dtype=torch.float64)
    return result


def flow_of_heads(stack, seen, lens):
    """The flows of the last layer: one table for each head, or one in all. `stack` is [layer][head][query][key]."""
    hidden = [[_hide(head, mask, lens) for head in heads] for heads, mask in zip(stack, seen, strict=True)]
    layers = [merge(heads, lens, summed=False, level=level) for level, heads in enumerate(hidden)]
    tops = [layers[-1]] if lens.heads == "mean" else [add_residual(head, 0.0, lens) for head in hidden[-1]]
    graphs = [tuple(tuple(map(tuple, layer)) for layer in (*layers[:-1], top)) for top in tops]
    return [all_flows(graph) for graph in graphs]


@cache
def all_flows(layers):
    """The maximum flow of every pair; variants of the lens that share a graph share its flows."""
    tokens, edges = range(len(layers[0])), make_edges(layers)
    return [[max_flow(layers, source, sink, edges) for sink in tokens] for source in tokens]


def make_edges(layers):
    """The capacity of every edge, from (level, position) to the one below it, and 0 for the way back."""
    edges = {}
    for level, layer in enumerate(layers):
        for query, row in enumerate(layer):
            for key, capacity in enumerate(row):
                if capacity > 0:
                    edges.setdefault((level + 1, query), {})[level, key] = capacity
                    edges.setdefault((level, key), {}).setdefault((level + 1, query), 0.0)
    return edges


def max_flow(layers, source, sink, edges=None):
    """The maximum flow from a node above the last layer to a node below the first, by shortest augmenting paths."""
    left = {node: dict(others) for node, others in (edges or make_edges(layers)).items()}
    start, end, total = (len(layers), source), (0, sink), 0.0
    while path := _find_path(left, start, end):
        sent = min(left[one][other] for one, other in path)
        for one, other in path:
            left[one][other] -= sent
            left[other][one] += sent
        total += sent
    return total


def _find_path(left, start, end):
    """The edges of a shortest path through what is left, or nothing."""
    before, queue = {start: None}, deque([start])
    while queue and end not in before:
        node = queue.popleft()
        for other, width in left.get(node, {}).items():
            if width > 1e-15 and other not in before:
                before[other] = node
                queue.append(other)
    path, node = [], end
    while node in before and before[node] is not None:
        path.append((before[node], node))
        node = before[node]
    return path


def _divide(table, uniform):
    ratios = [[a / b if b else 0.0 for a, b in zip(*rows, strict=True)] for rows in zip(table, uniform, strict=True)]
    return [[ratio / sum(row) for ratio in row] for row in ratios]
