"""Traces of tiny models with well- and ill-conditioned values, and a literal check of their effective attention."""

from dataclasses import replace

import torch

from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.lenses.effective import Effective
from tests.models import text, tiny
from tests.oracles.effective import oracle

LONG, SHORT = [text(12), text(20), text(9)], [text(3), text(5), text(2)]  # the tiny models have 8 value dimensions
MIXED = [text(3), text(20), text(6), text(1)]
SQUARE = [text(6), text(3), text(20)]  # with [CLS] and [SEP], the first has as many tokens as value dimensions
EPS = torch.finfo(torch.float32).eps


def assert_exact(trace, device="cpu"):
    """Effective attention, ranks and residuals against a float64 decomposition of every row."""
    maps = view(move(trace, device), "effective")
    for index in range(len(trace.layers)):
        expected = oracle(trace, index, Effective())
        assert (maps.layer(trace.layers[index]).cpu().double() - expected).abs().max() <= 1e-6
    assert torch.equal(maps.diagnostics["rank"].cpu(), expected_ranks(trace))
    assert maps.diagnostics["residual"].max() <= 1e-4  # values near the rank cut keep 1e-7 of theirs outside it
    return maps


def expected_ranks(trace):
    """The rank of the values that the query with most keys sees."""
    layers = []
    for values, visible in zip(trace.values, trace.visible, strict=True):
        seen = [mask[mask.sum(-1).argmax()] for mask in visible]
        layers.append([[rank(head[keys]) for head in heads] for heads, keys in zip(values.cpu(), seen, strict=True)])
    return torch.tensor(layers).transpose(0, 1)


def rank(values):
    sizes = torch.linalg.svdvals(values.double())
    return int((sizes > sizes.max() * max(values.shape) * EPS).sum())


def change_values(trace, change):
    values = [change(layer) for layer in trace.values]
    context = [attention @ layer for attention, layer in zip(trace.attention, values, strict=True)]
    return replace(trace, values=values, context=context, group=1)


def move(trace, device):
    names = ("attention", "visible", "values", "context", "output")
    parts = {name: getattr(trace, name) for name in names}
    masks = {id(mask): mask.to(device) for mask in trace.visible}  # layers go on sharing masks
    moved = {name: [layer.to(device) for layer in part] for name, part in parts.items() if part and name != "visible"}
    return replace(trace, visible=[masks[id(mask)] for mask in trace.visible], **moved)


def near_the_cut(offset):
    """Values whose smallest singular value is off the rank cut by a relative `offset`."""

    def change(values):
        left, sizes, right = torch.linalg.svd(values.double(), full_matrices=False)
        sizes = torch.ones_like(sizes)
        sizes[..., -1] = (1 + offset) * max(values.shape[-2:]) * EPS
        return (left * sizes[..., None, :] @ right).float()

    return change


def lose_a_direction(values):
    """Make one direction of one head, in some examples, the sum of two others."""
    changed = values.clone()
    changed[:1, 1, :, 7] = changed[:1, 1, :, 0] + changed[:1, 1, :, 1]
    return changed


TRACES = {
    "long": capture(tiny("bert"), LONG),
    "short": capture(tiny("bert"), SHORT),
    "mixed lengths": capture(tiny("bert"), MIXED),
    "mixed lengths with padding kept": capture(tiny("bert"), MIXED, keep=("values", "pads")),
    "square": capture(tiny("bert"), SQUARE),
    "square and deficient": change_values(capture(tiny("bert"), SQUARE), lose_a_direction),
    "deficient": change_values(capture(tiny("bert"), LONG), lambda values: values * (torch.arange(8) > 1)),
    "deficient, mixed lengths": change_values(
        capture(tiny("bert"), MIXED), lambda values: values * (torch.arange(8) > 4)
    ),
    "repeated": change_values(capture(tiny("bert"), SHORT), lambda values: values * 0 + values[:, :, :1]),
    "zero": change_values(capture(tiny("bert"), SHORT), lambda values: 0 * values),
    "zero, mixed lengths": change_values(capture(tiny("bert"), MIXED), lambda values: 0 * values),
    "condition 1e7": change_values(capture(tiny("bert"), MIXED), lambda values: values * torch.logspace(0, -7, 8)),
    "huge": change_values(capture(tiny("bert"), LONG), lambda values: 1e15 * values),
    "tiny": change_values(capture(tiny("bert"), LONG), lambda values: 1e-20 * values),
    **{
        f"{1 + offset:g} of the rank cut": change_values(capture(tiny("bert"), [text(20)]), near_the_cut(offset))
        for offset in (-0.3, -1e-2, -2e-4, 2e-4, 1e-2, 0.3, 3.0)
    },
    "causal": capture(tiny("llama"), LONG),
    "causal, deficient": change_values(capture(tiny("llama"), LONG), lambda values: values * (torch.arange(8) > 1)),
    "causal, near the rank cut": change_values(capture(tiny("llama"), [text(20)]), near_the_cut(1e-2)),
    "sliding windows": capture(tiny("modernbert"), LONG),
    "no context": replace(capture(tiny("bert"), LONG), context=None),
}
