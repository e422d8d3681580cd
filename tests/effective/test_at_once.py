"""All heads at once give what the careful way gives, at any length and rank, on any device."""

from dataclasses import replace

import pytest
import torch

from benchmarks.gpu import oracle, stress_cases
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.effective import at_once
from headscope.effective import layers as effective
from headscope.effective.at_once import Layers, effective_at_once
from headscope.effective.causal import project_rows
from headscope.effective.layers import together
from headscope.effective.reach import Reach
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.effective.effective_traces import (
    LONG,
    MIXED,
    NOT_ALIKE,
    SHORT,
    TROUBLED,
    assert_same,
    changed_values,
    weights,
)
from tests.gpu import gpu
from tests.models import batch, network, text, tiny, tokenizer


@pytest.mark.parametrize("texts", [LONG, SHORT, MIXED], ids=["long", "short", "mixed"])
@pytest.mark.parametrize("keep", [(), ("values", "pads")], ids=["plain", "with pads"])
def test_ordinary_values_give_what_the_careful_way_gives(texts, keep):
    trace = capture(tiny("bert"), texts, keep=keep)
    assert_same(together(trace), trace)


@pytest.mark.parametrize("trace", TROUBLED.values(), ids=TROUBLED)
def test_any_length_and_rank_will_do(trace):
    found = list(together(trace))
    assert None not in found
    assert_same(found, trace)


SQUARE = [text(6), text(3), text(20)]  # with [CLS] and [SEP], the first has as many tokens as a head has values


def lacking(values, texts):
    """Values of which some texts' last direction is the sum of two others, in one head of each layer."""
    changed = values.clone()
    changed[:texts, 1, :, 7] = changed[:texts, 1, :, 0] + changed[:texts, 1, :, 1]
    return changed


@pytest.mark.parametrize("texts", [0, 1, 3])
def test_where_values_are_square_a_lack_is_foreseen(texts, monkeypatch):
    trace = changed_values(capture(tiny("bert"), SQUARE), lambda each: lacking(each, texts))
    assert 8 in trace.keys.counts
    monkeypatch.setattr(at_once, "HEAVY", 0)
    fewer, asked = at_once.Fewer.of, []
    monkeypatch.setattr(at_once.Fewer, "of", lambda *given: asked.append(given[2]) or fewer(*given))
    assert_same(together(trace), trace)
    assert [len(each) for each in asked] == [at_once.SPARE] if texts < 3 else [at_once.SPARE, 6]  # of 2 layers


def test_a_light_model_is_asked(monkeypatch):
    monkeypatch.setattr(at_once, "_foreseen", lambda *_: pytest.fail("more work for the host"))
    trace = capture(tiny("bert"), SQUARE)
    assert_same(together(trace), trace)


def test_what_is_foreseen_may_not_fit(monkeypatch):
    monkeypatch.setattr(at_once, "HEAVY", 0)
    trace = capture(tiny("bert"), SQUARE)
    narrow = [each.tril() for each in trace.visible]
    assert list(together(replace(trace, visible=narrow))) == [None] * len(trace.layers)


@pytest.mark.parametrize("case", stress_cases())
@pytest.mark.parametrize("known", [True, False], ids=["context known", "context unknown"])
def test_the_worst_error_is_that_of_single_precision(case, known):
    values = stress_cases()[case]
    attention = torch.softmax(3 * torch.randn(*values.shape[:2], values.shape[1]), -1)
    reach = Reach(torch.ones(1, values.shape[1], dtype=torch.bool), [values.shape[1]], values.shape[-1])
    context = (attention @ values)[None, None] if known else None
    (found,) = effective_at_once(Layers([attention[None]], values[None, None], context, reach))
    assert (weights(found)[0].double() - oracle(attention, values, None)).abs().max() <= 1e-6


@pytest.mark.parametrize("trace", NOT_ALIKE.values(), ids=NOT_ALIKE)
def test_layers_that_are_not_alike_are_left_to_the_careful_way(trace):
    assert list(together(trace)) == [None] * len(trace.layers)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bart"])
def test_for_a_causal_model_no_work_is_done_in_vain(kind, monkeypatch):
    trace = capture(tiny(kind), batch(kind), site="decoder" if kind == "bart" else "self")
    monkeypatch.setattr(effective, "effective_at_once", lambda *_: pytest.fail("nothing can come of it"))
    assert list(together(trace)) == [None] * len(trace.layers)


@pytest.mark.parametrize("site", ["encoder", "cross"])
def test_where_a_model_is_not_causal_layers_are_taken_together(site):
    trace = capture(tiny("bart"), batch("bart"), site=site)
    assert not trace.causal
    assert_same(together(trace), trace)


def test_values_of_another_precision_are_left_to_the_careful_way():
    trace = capture(tiny("bert"), LONG)
    half = replace(
        trace, **{name: [each.bfloat16() for each in getattr(trace, name)] for name in ("values", "context")}
    )
    assert list(together(half)) == [None] * len(trace.layers)
    assert view(half, "effective").weights.dtype == torch.float32


def test_layers_of_other_widths_are_left_to_the_careful_way():
    trace = capture(tiny("bert"), LONG)
    narrow = {name: [each[..., : 4 + 4 * at] for at, each in enumerate(getattr(trace, name))]
              for name in ("values", "context")}  # fmt: skip
    trace = replace(trace, **narrow)
    assert list(together(trace)) == [None] * len(trace.layers)
    assert view(trace, "effective").diagnostics["residual"].max() <= 1e-5


def test_values_that_are_not_finite_are_left_to_the_careful_way_which_refuses_them():
    trace = changed_values(capture(tiny("bert"), LONG), lambda each: each * torch.inf)
    assert list(together(trace)) == [None] * len(trace.layers)


def moved(trace, device):
    parts = {name: getattr(trace, name) for name in ("attention", "visible", "values", "context", "output")}
    return replace(trace, **{name: [each.to(device) for each in part] for name, part in parts.items() if part})


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
@pytest.mark.parametrize("name", TROUBLED)
def test_troubled_values_on_a_gpu_give_the_same_maps(name):
    trace = TROUBLED[name]
    there = view(moved(trace, "cuda"), "effective")
    torch.testing.assert_close(there.weights.cpu(), view(trace, "effective").weights, atol=2e-6, rtol=1e-4)


@gpu
def test_causal_rows_on_a_gpu_are_as_exact():
    visible = torch.ones(40, 40, dtype=torch.bool).tril()
    trace = Trace.of([torch.softmax(torch.randn(1, 2, 40, 40), -1).tril()], [str(place) for place in range(40)],
                     visible="causal")  # fmt: skip
    values = torch.randn(1, 2, 40, 8)
    here, _ = project_rows(trace.attention[0], values, visible[None])
    there, _ = project_rows(trace.attention[0].cuda(), values.cuda(), visible[None].cuda())
    assert (here - there.cpu()).abs().max() <= 1e-6
