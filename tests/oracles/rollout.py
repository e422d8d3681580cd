"""Rollout by loops over single tokens, without padding; the inner weights are those of the inner lens's own oracle."""

from dataclasses import dataclass
from importlib import import_module

import torch

from headscope.core.spec import entry_name
from tests.oracles.norm import add_residual_and_normalize

UNSIGNED = {"absolute": abs, "clip": lambda weight: max(weight, 0.0), "signed": lambda weight: weight}


def oracle(trace, layer, lens):
    """The rollout of one layer of every example, padded again."""
    literal = import_module(f"tests.oracles.{entry_name(type(lens.inner))}")
    first = trace.layers.index(lens.start)
    maps = [literal.oracle(trace, index, lens.inner) for index in range(first, layer + 1)]
    masks = list(trace.visible)[first : layer + 1]
    heads = 1 if lens.heads == "mean" else len(trace.heads)
    result = torch.zeros(len(trace.examples), heads, *trace.visible[0].shape[1:], dtype=torch.float64)
    for row, real in enumerate(trace.queries.real):
        tokens = real.nonzero()[:, 0].tolist()
        stack = [_cut(part[row], tokens) for part in maps]
        seen = [mask[row][tokens][:, tokens].tolist() for mask in masks]
        lens = with_measured(lens, trace, range(first, layer + 1), row, tokens)
        scores = roll(stack, seen, lens)
        if lens.receptive_field:
            equal = [[_equal(mask)] * len(stack[0]) for mask in seen]
            scores = [_correct(*pair, lens) for pair in zip(scores, roll(equal, seen, lens), strict=True)]
        for head, table in enumerate(scores):
            for query, position in enumerate(tokens):
                result[row, head, position, tokens] = torch.tensor(table[query], dtype=torch.float64)
    return result


def roll(stack, seen, lens):
    """The rollouts of the last layer: one for each head, or one in all. `stack` is [layer][head][query][key]."""
    count = len(stack[0])
    below = identity(len(seen[0]))
    for index, (heads, mask) in enumerate(zip(stack, seen, strict=True)):
        merged = merge([_hide(head, mask, lens) for head in heads], lens, summed=lens.heads == "printed", level=index)
        if index == len(stack) - 1 and lens.heads != "mean":
            through = multiply(merged, below) if lens.heads == "printed" else below
            own = lens.residual if lens.heads == "each_residual" else 0.0
            each = [add_residual(_hide(head, mask, lens), own, lens) for head in heads]
            return [multiply(each[head], through) for head in range(count)]
        below = multiply(merged, below)
    return [below]


@dataclass(frozen=True)
class Measured:
    """A lens in which the residual of each layer and query is a number of its own."""

    lens: object
    residual: list

    def __getattr__(self, name):
        return getattr(self.lens, name)


def with_measured(lens, trace, layers, row, tokens):
    """The lens with 1 − r of every token in place of "measured"."""
    plain = lens.lens if isinstance(lens, Measured) else lens
    if plain.residual != "measured":
        return plain
    return Measured(plain, [[1 - mixing_ratio(trace, layer, row, token) for token in tokens] for layer in layers])


def mixing_ratio(trace, layer, row, token):
    """The length of what other tokens add, over that and the length of what the token adds."""
    parts = add_residual_and_normalize(trace, layer)[row, token]
    mixed, kept = parts.sum(0) - parts[token], parts[token]
    return float(mixed.norm() / (mixed.norm() + kept.norm()))


def put_measured(total, shares):
    """Rows whose diagonal is a given share, and whose other weights are scaled to the rest."""
    rows = []
    for query, row in enumerate(total):
        others = sum(weight for key, weight in enumerate(row) if key != query)
        edges = [(1 - shares[query]) * weight / others if others else 0.0 for weight in row]
        edges[query] = shares[query] if others else 1.0
        rows.append(edges)
    return rows


def merge(heads, lens, *, summed, level=0):
    tokens = range(len(heads[0]))
    total = [[sum(head[query][key] for head in heads) for key in tokens] for query in tokens]
    if isinstance(lens, Measured):
        return put_measured(total, lens.residual[level])
    if not summed:
        return add_residual([[weight / len(heads) for weight in row] for row in total], lens.residual, lens)
    if lens.signed == "signed":
        return add_residual(total, lens.residual, lens)
    mixed = []
    for query, row in enumerate(total):
        edges = [(1 - lens.residual) * weight for weight in row]
        edges[query] += lens.residual
        mixed.append([edge / sum(edges) for edge in edges])
    return mixed


def add_residual(table, residual, lens):
    mixed = []
    for query, row in enumerate(table):
        total = 1.0 if lens.signed == "signed" else sum(row)
        edges = [(1 - residual) * weight / total if total else 0.0 for weight in row]
        edges[query] += residual if total else 1.0
        mixed.append(edges)
    return mixed


def multiply(left, right):
    tokens = range(len(left))
    return [[sum(left[i][j] * right[j][k] for j in tokens) for k in tokens] for i in tokens]


def identity(size):
    return [[float(i == j) for j in range(size)] for i in range(size)]


def _cut(part, tokens):
    return part[:, tokens][:, :, tokens].tolist()


def _hide(head, mask, lens):
    """A head's weights on the keys that are visible, without their signs."""
    unsigned = UNSIGNED[lens.signed]
    pairs = [zip(*rows, strict=True) for rows in zip(head, mask, strict=True)]
    return [[unsigned(weight) if visible else 0.0 for weight, visible in row] for row in pairs]


def _equal(mask):
    return [[visible / sum(row) for visible in row] for row in mask]


def _correct(table, uniform, lens):
    ratios = [[a / b if b else 0.0 for a, b in zip(*rows, strict=True)] for rows in zip(table, uniform, strict=True)]
    if lens.signed == "signed":
        return ratios
    return [[ratio / sum(row) for ratio in row] for row in ratios]
