"""Relevance by loops over single tokens, one example, head and layer at a time, without padding."""

import torch


def oracle(trace, layer, lens):
    """R after one layer of every example, padded again."""
    first = trace.layers.index(lens.start)
    width = trace.attention[0].shape[-1]
    result = torch.zeros(len(trace.examples), 1, width, width, dtype=torch.float64)
    for row, real in enumerate(trace.queries.real):
        tokens = real.nonzero()[:, 0].tolist()
        relevance = {(i, j): float(i == j) for i in tokens for j in tokens}
        for index in range(first, layer + 1):
            edges = positive_part(trace, index, row, tokens)
            relevance = {
                (i, j): relevance[i, j] + sum(edges[i, k] * relevance[k, j] for k in tokens)
                for i in tokens
                for j in tokens
            }
        for (i, j), value in relevance.items():
            result[row, 0, i, j] = value - float(i == j and not lens.identity)
    return result


def positive_part(trace, index, row, tokens):
    """The mean over heads of the positive part of attention × gradient, for each pair of tokens."""
    attention, gradient = trace.attention[index][row].tolist(), trace.gradient[index][row].tolist()
    seen, heads = trace.visible[index][row].tolist(), range(len(attention))
    return {
        (i, j): sum(max(0.0, attention[h][i][j] * gradient[h][i][j]) for h in heads) / len(heads) if seen[i][j] else 0.0
        for i in tokens
        for j in tokens
    }
