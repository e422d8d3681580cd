"""Traces of tiny models, ordinary and troubled, and what effective attention must be for them."""

from dataclasses import replace

import torch

from headscope.core.maps import Factored
from headscope.effective.layers import effective_layer
from headscope.effective.visibility import Sight
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.models import network, text, tiny, tokenizer

LONG, SHORT = [text(12), text(20), text(9)], [text(3), text(5), text(2)]  # the tiny models have 8 value dimensions
MIXED = [text(3), text(20), text(6), text(1)]


def weights(layer):
    return layer.part.weights if isinstance(layer.part, Factored) else layer.part


def assert_same(found, trace):
    layers = zip(trace.layers, trace.attention, trace.values, map(Sight, trace.visible), strict=True)
    careful = [effective_layer(*parts, keys="visible", label=at) for at, *parts in layers]
    for one, other in zip(found, careful, strict=True):
        torch.testing.assert_close(weights(one), weights(other), atol=2e-6, rtol=1e-4)
        for name, table in other.diagnostics.items():
            torch.testing.assert_close(one.diagnostics[name], table, atol=2e-6, rtol=1e-3)


def changed_values(trace, change):
    values = [change(each) for each in trace.values]
    context = [attention @ each for attention, each in zip(trace.attention, values, strict=True)]
    return replace(trace, values=values, context=context)


def on_the_cut(values):
    """Values of whose singular values one is just what makes it count: only eigenvectors can tell."""
    left, sizes, right = torch.linalg.svd(values.double(), full_matrices=False)
    sizes = torch.ones_like(sizes)
    sizes[..., -1] = (1 + 2e-4) * values.shape[-2] * torch.finfo(torch.float32).eps
    return (left * sizes[..., None, :] @ right).float()


NOT_ALIKE = {
    "causal": capture(tiny("llama"), LONG),
    "windows": capture(tiny("modernbert"), LONG),
    "float64": capture(load(network("bert").double(), tokenizer=tokenizer()), LONG),
    "no context": replace(capture(tiny("bert"), LONG), context=None),
}
TROUBLED = {
    "mixed lengths": capture(tiny("bert"), MIXED),
    "mixed lengths with pads": capture(tiny("bert"), MIXED, keep=("values", "pads")),
    "deficient": changed_values(capture(tiny("bert"), LONG), lambda each: each * (torch.arange(8) > 1)),
    "deficient and mixed": changed_values(capture(tiny("bert"), MIXED), lambda each: each * (torch.arange(8) > 4)),
    "repeated": changed_values(capture(tiny("bert"), SHORT), lambda each: each * 0 + each[:, :, :1]),
    "zero": changed_values(capture(tiny("bert"), SHORT), lambda each: 0 * each),
    "zero and mixed": changed_values(capture(tiny("bert"), MIXED), lambda each: 0 * each),
    "on the cut": changed_values(capture(tiny("bert"), LONG), lambda each: on_the_cut(each)),
    "a steep fall": changed_values(capture(tiny("bert"), MIXED), lambda each: each * torch.logspace(0, -7, 8)),
}
