"""Values in place of a model's own are the same for an input wherever it is, and different for every head.

That maps with them equal a literal projection, in any batch and with any padding, is among the laws of lenses.
"""

from dataclasses import replace

import pytest
import torch

from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.effective.null_values import replace_values
from headscope.engine.capture import capture
from tests.effective.traces import LONG
from tests.models import tiny

KINDS = ("random", "permuted")


def made_trace(tokens=6, value=2):
    generator = torch.Generator().manual_seed(0)
    attention = torch.rand(1, 3, tokens, tokens, generator=generator).softmax(-1)
    values = torch.randn(1, 3, tokens, value, generator=generator)
    return Trace.of([attention], [f"t{index}" for index in range(tokens)], values=[values])


def test_the_models_values_leave_the_trace_as_it_is():
    trace = made_trace()
    assert replace_values(trace, "model") is trace


@pytest.mark.parametrize("values", KINDS)
def test_values_do_not_depend_on_the_choice_of_layers_and_heads(values):
    whole = replace_values(capture(tiny("llama"), LONG), values)
    part = replace_values(capture(tiny("llama"), LONG, layers=[1], heads=[2, 0]), values)
    assert part.layers == (1,)
    assert part.heads == (2, 0)
    torch.testing.assert_close(part.values[0], whole.values[1][:, [2, 0]])


def test_every_head_and_layer_has_random_values_of_its_own_even_where_heads_share_theirs():
    trace = capture(tiny("llama"), LONG)
    assert trace.group > 1
    layers = replace_values(trace, "random").values
    heads = [layer[0, head] for layer in layers for head in range(layer.shape[1])]
    assert not any(torch.equal(one, other) for index, one in enumerate(heads) for other in heads[:index])


def test_random_values_ignore_the_models_and_what_it_wrote():
    trace = made_trace()
    context = [trace.attention[0] @ trace.values[0]]
    other = replace(trace, values=[100 + trace.values[0] ** 3], context=context)
    assert torch.equal(view(trace, "effective:values=random").weights, view(other, "effective:values=random").weights)
    assert not torch.equal(view(trace, "effective").weights, view(other, "effective").weights)


def test_permuted_values_are_the_models_in_another_order():
    trace = made_trace()
    permuted = replace_values(trace, "permuted").values[0][0]
    for old, new in zip(trace.values[0][0], permuted, strict=True):
        assert sorted(map(tuple, old.tolist())) == sorted(map(tuple, new.tolist()))
    assert not torch.equal(trace.values[0][0], permuted)


def test_random_values_are_standard_normal():
    drawn = replace_values(made_trace(tokens=200, value=32), "random").values[0]  # 19,200 numbers
    assert abs(float(drawn.mean())) < 0.05
    assert abs(float(drawn.std()) - 1) < 0.05
    assert abs(float((drawn[..., 1:] * drawn[..., :-1]).mean())) < 0.05


def test_with_at_most_d_keys_random_values_change_nothing():
    trace = made_trace(tokens=4, value=4)
    assert torch.equal(view(trace, "effective:values=random").weights, view(trace, "raw").weights)
