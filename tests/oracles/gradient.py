"""The gradient of the trace, cell by cell; `finite_difference` says what it must be."""

from dataclasses import dataclass

import torch

from headscope.core.edit import Edit
from headscope.engine.edited import edited


def oracle(trace, layer, lens):
    gradient = trace.gradient[layer].double()
    return gradient * trace.attention[layer].double() if lens.times_attention else gradient


@dataclass(frozen=True)
class Nudge(Edit):
    """Add `step` to one attention weight of one layer."""

    layer: int
    cell: tuple[int, ...]
    step: float

    def __call__(self, heads):
        if heads.layer != self.layer:
            return None
        attention = heads.attention.clone()
        attention[self.cell] += self.step
        return attention @ heads.values


def finite_difference(model, tensors, score, layer, cell, step=1e-5):
    """Return how much the score of the cell's example changes with one attention weight, all later layers run again."""
    scores = []
    for sign in (1, -1):
        with torch.no_grad(), edited(model, Nudge(layer, cell, sign * step)):
            scores.append(float(score(model.network(**tensors))[cell[0]]))
    return (scores[0] - scores[1]) / (2 * step)
