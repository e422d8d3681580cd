"""Effective attention of whole traces equals a float64 decomposition of every row, on every code path and device."""

from dataclasses import replace

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.effective import layers as module
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.effective.traces import LONG, TRACES, assert_exact, change_values
from tests.gpu import gpu
from tests.models import batch, network, tiny, tokenizer


@pytest.mark.parametrize("name", TRACES)
def test_any_length_rank_and_mask_is_exact(name):
    assert_exact(TRACES[name])


@pytest.mark.parametrize("name", TRACES)
def test_layers_computed_together_are_as_exact(name, monkeypatch):
    """Stack layers as on a GPU."""
    monkeypatch.setattr(module, "_stack_layers", lambda layers: stacked(layers))
    assert_exact(TRACES[name])


def stacked(layers):
    groups = []
    for layer in layers:
        if groups and layer.stacks_with(groups[-1][0]):
            groups[-1].append(layer)
        else:
            groups.append([layer])
    return groups


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_oss", "modernbert"])
def test_models_with_masks_of_their_own_are_exact(kind):
    assert_exact(capture(tiny(kind), batch(kind)))


def test_heads_that_share_values_are_factored_once_and_give_the_same_maps():
    trace = capture(tiny("llama"), LONG)
    assert trace.group > 1
    together, apart = view(trace, "effective"), view(replace(trace, group=1), "effective")
    torch.testing.assert_close(together.weights, apart.weights, atol=1e-7, rtol=1e-5)
    assert torch.equal(together.diagnostics["rank"], apart.diagnostics["rank"])


def test_chosen_heads_share_no_values():
    trace = capture(tiny("llama"), LONG, heads=[2, 0])
    assert trace.group == 1
    assert_exact(trace)


@pytest.mark.parametrize("kind", ["bert", "llama"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_projected_in_float32(kind, dtype):
    trace = capture(load(network(kind).to(dtype), tokenizer=tokenizer()), LONG)
    maps = assert_exact(trace)
    assert maps.weights.dtype == torch.float32


def test_float64_is_projected_in_float64():
    trace = capture(load(network("bert").double(), tokenizer=tokenizer()), LONG)
    maps = view(trace, "effective")
    assert maps.weights.dtype == torch.float64
    assert maps.diagnostics["residual"].max() < 1e-12


def test_layers_of_different_value_width_are_exact():
    trace = capture(tiny("bert"), LONG)
    narrow = {
        name: [layer[..., : 4 + 4 * index] for index, layer in enumerate(getattr(trace, name))]
        for name in ("values", "context")
    }
    assert_exact(replace(trace, **narrow))


def test_full_rank_with_few_keys_gives_attention_itself():
    trace = TRACES["short"]
    assert view(trace, "effective").parts[0] is trace.attention[0]


def test_values_that_are_not_finite_are_named_by_layer_head_and_example():
    trace = capture(tiny("bert"), LONG)
    trace.values[1][2, 3, 4] = torch.nan
    with pytest.raises(
        InputError, match="In layer 1 the values of head 3 are NaN or infinite for example 2, so no proj"
    ):
        view(trace, "effective")
    every = change_values(trace, lambda values: values * torch.inf)
    with pytest.raises(InputError, match="In layer 0 the values of heads 0, 1, 2 and 3 are .* examples 0, 1 and 2, so"):
        view(every, "effective")


@gpu
@pytest.mark.parametrize("name", TRACES)
def test_a_gpu_is_as_exact(name):
    assert_exact(TRACES[name], "cuda")


@gpu
@pytest.mark.parametrize("kind", ["bert", "llama", "modernbert", "gpt_oss"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_on_a_gpu_is_captured_there(kind, dtype):
    trace = capture(load(network(kind).to("cuda", dtype), tokenizer=tokenizer()), LONG)
    assert trace.attention[0].is_cuda
    here = replace(
        trace, **{name: [part.cpu() for part in getattr(trace, name)] for name in ("attention", "values", "visible")}
    )
    maps, expected = view(trace, "effective"), view(replace(here, context=None), "effective")
    torch.testing.assert_close(maps.weights.cpu(), expected.weights, atol=2e-6, rtol=1e-4)
