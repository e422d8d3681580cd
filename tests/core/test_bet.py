"""What the bet gives is what the careful way gives, on any device, all layers together or one by one."""

from dataclasses import replace

import pytest
import torch

from headscope.core.bet import effective_on_a_bet
from headscope.core.effective import effective_layer
from headscope.core.lens import view
from headscope.core.maps import Factored
from headscope.core.rows import project_rows
from headscope.core.trace import Trace, shared_keys
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.gpu import gpu
from tests.models import batch, network, text, tiny, tokenizer

LONG, SHORT = [text(12), text(20), text(9)], [text(3), text(5), text(2)]  # the tiny models have 8 value dimensions


def weights(layer):
    return layer.part.weights if isinstance(layer.part, Factored) else layer.part


def assert_same(found, trace):
    layers = zip(trace.layers, trace.attention, trace.values, trace.visible, strict=True)
    careful = [effective_layer(*parts, keys="visible", shared=shared_keys(parts[2]), label=at) for at, *parts in layers]
    for one, other in zip(found, careful, strict=True):
        torch.testing.assert_close(weights(one), weights(other), atol=2e-6, rtol=1e-4)
        for name, table in other.diagnostics.items():
            torch.testing.assert_close(one.diagnostics[name], table, atol=2e-6, rtol=1e-3)


together = pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])


@together
@pytest.mark.parametrize("texts", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("keep", [(), ("values", "pads")], ids=["plain", "with pads"])
def test_a_bet_that_is_won_gives_what_the_careful_way_gives(texts, keep, together):
    trace = capture(tiny("bert"), texts, keep=keep)
    assert_same(effective_on_a_bet(trace, together=together), trace)


def changed_values(trace, change):
    values = [change(each) for each in trace.values]
    context = [attention @ each for attention, each in zip(trace.attention, values, strict=True)]
    return replace(trace, values=values, context=context)


@together
def test_values_of_poor_condition_are_taken_the_exact_way(together):
    scales = torch.logspace(0, -3, 8)
    trace = changed_values(capture(tiny("bert"), LONG), lambda each: each * scales)
    assert_same(effective_on_a_bet(trace, together=together), trace)


@together
@pytest.mark.parametrize(
    "trace",
    [
        capture(tiny("bert"), [text(3), text(20)]),
        capture(tiny("llama"), LONG),
        capture(tiny("modernbert"), LONG),
        changed_values(capture(tiny("bert"), LONG), lambda each: each * (torch.arange(8) > 1)),
        changed_values(capture(tiny("bert"), SHORT), lambda each: 0 * each),
        capture(load(network("bert").double(), tokenizer=tokenizer()), LONG),
        replace(capture(tiny("bert"), LONG), context=None),
    ],
    ids=["mixed lengths", "causal", "windows", "deficient", "zero", "float64", "no context"],
)
def test_a_bet_that_cannot_be_won_is_left_to_the_careful_way(trace, together):
    assert list(effective_on_a_bet(trace, together=together)) == [None] * len(trace.layers)


def test_only_the_layer_that_loses_goes_the_careful_way():
    trace = capture(tiny("bert"), LONG)
    lost = replace(trace, values=[0 * trace.values[0], *trace.values[1:]])
    assert [each is None for each in effective_on_a_bet(lost, together=False)] == [True, False]


def moved(trace, device):
    parts = ("attention", "visible", "values", "context", "output")
    return replace(trace, **{name: [each.to(device) for each in getattr(trace, name)] for name in parts})


@gpu
@pytest.mark.parametrize("kind", ["bert", "llama", "modernbert", "gpt_oss"])
def test_a_gpu_gives_the_same_maps(kind):
    trace = capture(tiny(kind), batch(kind))
    there = view(moved(trace, "cuda"), "effective")
    torch.testing.assert_close(there.weights.cpu(), view(trace, "effective").weights, atol=1e-6, rtol=1e-4)


@gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_on_a_gpu_is_captured_there(dtype):
    model = load(network("bert").to("cuda", dtype), tokenizer=tokenizer())
    trace = capture(model, LONG)
    assert trace.attention[0].is_cuda
    assert view(trace, "effective").diagnostics["residual"].max() <= 1e-5


@gpu
def test_causal_rows_on_a_gpu_are_as_exact():
    visible = torch.ones(40, 40, dtype=torch.bool).tril()
    trace = Trace.of([torch.softmax(torch.randn(1, 2, 40, 40), -1).tril()], [str(place) for place in range(40)],
                     visible="causal")  # fmt: skip
    values = torch.randn(1, 2, 40, 8)
    here, _ = project_rows(trace.attention[0], values, visible[None])
    there, _ = project_rows(trace.attention[0].cuda(), values.cuda(), visible[None].cuda())
    assert (here - there.cpu()).abs().max() <= 1e-6
