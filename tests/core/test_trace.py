"""Traces from tensors."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.trace import Trace


def softmax(*shape, seed=0):
    return torch.softmax(torch.randn(shape, generator=torch.Generator().manual_seed(seed)), -1)


def values(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


ABC = ["a", "b", "c"]


def test_a_models_attentions_and_its_tokens_make_a_trace():
    trace = Trace.of((softmax(2, 4, 3, 3), softmax(2, 4, 3, 3)), [ABC, ABC], values=[values(2, 4, 3, 5)] * 2)
    assert (trace.layers, trace.heads, trace.held) == ((0, 1), (0, 1, 2, 3), {"attention", "values"})
    assert view(trace, "effective").weights.shape == (2, 2, 4, 3, 3)


def test_one_example_needs_no_batch_axis_and_can_be_a_numpy_array():
    trace = Trace.of([np.asarray(softmax(4, 3, 3))], ABC)
    assert trace.attention[0].shape == (1, 4, 3, 3)


def test_rows_shorter_than_the_maps_are_padding():
    attention = softmax(2, 1, 3, 3)
    trace = Trace.of([attention], [ABC, ["a", "b"]])
    assert trace.keys.counts.tolist() == [3, 2]
    assert not trace.visible[0][1, 2].any()
    assert not trace.attention[0][1, :, 2].any()


def test_shared_value_heads_are_repeated():
    trace = Trace.of([softmax(1, 4, 3, 3)], ABC, values=[values(1, 2, 3, 5)])
    assert torch.equal(trace.values[0][:, 0], trace.values[0][:, 1])


def uneven():
    """Layers whose heads have 1, 2, 3, … value dimensions."""
    attention = [softmax(2, 2, 5, 5, seed=layer) for layer in range(12)]
    wide = [values(2, 2, 5, 1 + layer, seed=layer) for layer in range(12)]
    output = [values(2, 1 + layer, 6, seed=layer) for layer in range(12)]
    trace = Trace.of(attention, [list("abcde")] * 2, values=wide, output=output)
    return replace(trace, context=[weights @ wide_values for weights, wide_values in zip(attention, wide, strict=True)])


def test_layers_may_differ_in_their_value_dimensions():
    trace = uneven()
    assert torch.equal(view(trace, "raw").weights, torch.stack(list(trace.attention), 1))
    result = view(trace, "effective")
    for layer, (attention, layer_values) in enumerate(zip(trace.attention, trace.values, strict=True)):
        torch.testing.assert_close(result.layer(layer) @ layer_values, attention @ layer_values, atol=1e-5, rtol=1e-4)
        assert result.diagnostics["rank"][:, layer].unique().tolist() == [min(5, 1 + layer)]
    assert view(trace, "norm").weights.shape == (2, 12, 2, 5, 5)


@pytest.mark.parametrize("name", ["values", "context"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_layers_may_not_differ_in_anything_else(name, axis):
    trace = uneven()
    narrowed = [layer.narrow(axis, 0, layer.shape[axis] - 1) for layer in getattr(trace, name)]
    with pytest.raises(TypeCheckError):
        replace(trace, **{name: narrowed})


def test_other_keys_make_cross_attention():
    trace = Trace.of([softmax(1, 2, 2, 3)], ["x", "y"], keys=ABC)
    assert trace.site == "cross"
    assert trace.keys.text == [ABC]


def test_causal_attention_needs_an_explicit_visible():
    causal = softmax(1, 2, 4, 4).tril()
    causal = causal / causal.sum(-1, keepdim=True)
    with pytest.raises(InputError, match="looks like a causal model.*Say visible='causal' or visible='all'"):
        Trace.of([causal], list("abcd"))
    trace = Trace.of([causal], list("abcd"), visible="causal", values=[values(1, 2, 4, 2)])
    assert trace.visible[0][0].tolist() == torch.ones(4, 4).bool().tril().tolist()
    assert not view(trace, "effective").weights[0, 0].triu(1).any()


def test_a_custom_mask_is_used_unchanged():
    mask = torch.ones(1, 3, 3, dtype=torch.bool)
    mask[0, 0, 2] = False
    attention = softmax(1, 1, 3, 3).masked_fill(~mask[:, None], 0)
    assert torch.equal(Trace.of([attention], ABC, visible=mask).visible[0], mask)


def nan():
    attention = softmax(1, 1, 3, 3)
    attention[0, 0, 0, 0] = torch.nan
    return attention


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([nan()], ABC), {}, r"attentions\[0\] holds 1 values that are NaN or infinite"),
        (([softmax(3, 3)], ABC), {}, r"attentions\[0\] has shape \[3, 3\], not \[batch, head, query, key\]"),
        (([softmax(1, 1, 3, 3), softmax(1, 2, 3, 3)], ABC), {}, r"attentions\[1\] has shape \[1, 2, 3, 3\], but att"),
        (([torch.randn(1, 1, 3, 3) * 9], ABC), {}, r"is no attention.*Are these scores before the softmax\?"),
        (([torch.ones(1, 1, 3, 3, dtype=torch.int)], ABC), {}, r"holds torch\.int32, not floating-point numbers"),
        (
            ([softmax(1, 1, 3, 3)], ["a", "b", "c", "d"]),
            {},
            r"tokens has 1 row\(s\) of up to 4 tokens, but the maps are",
        ),
        (([softmax(2, 1, 3, 3)], [ABC]), {}, r"tokens has 1 row\(s\) of up to 3 tokens, but the maps are for 2 row"),
        (([softmax(1, 1, 3, 3)], []), {}, r"tokens must not be empty"),
        (([softmax(1, 1, 2, 3)], ["x", "y"]), {}, r"The maps are 2 × 3; give the tokens attended to as keys="),
        (([softmax(1, 2, 3, 3)], ABC), {"values": [values(1, 2, 4, 5)]}, r"values\[0\] has shape \[1, 2, 4, 5\], not"),
        (
            ([softmax(1, 2, 3, 3)], ABC),
            {"values": [values(1, 2, 3, 5)] * 2},
            r"values has 2 layer\(s\), but attentions",
        ),
        (([softmax(1, 3, 3, 3)], ABC), {"values": [values(1, 2, 3, 5)]}, r"values\[0\] has shape \[1, 2, 3, 5\]"),
        (([softmax(1, 1, 3, 3)], ABC), {"visible": "some"}, r"visible must be 'all', 'causal' or a boolean tensor"),
        (
            ([softmax(1, 1, 3, 3)], ABC),
            {"visible": torch.ones(1, 3, 3)},
            r"visible must be boolean of shape \[1, 3, 3\]",
        ),
    ],
)
def test_inconsistent_tensors_are_an_error(arguments, options, sentence):
    with pytest.raises(InputError, match=sentence):
        Trace.of(*arguments, **options)
