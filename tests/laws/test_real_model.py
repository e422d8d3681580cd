"""The same laws on a real pretrained model and real paragraphs."""

import pytest
import torch

from headscope.core.lens import view
from headscope.data.reading.read import read
from headscope.engine.capture import capture
from headscope.engine.recording.output_projection import find_projection
from tests.oracles import effective as literal

TEXTS = [each.text for each in read("sample")[:6]]
BATCH = [*TEXTS[:3], "A short one."]


@pytest.fixture(scope="module")
def trace(minilm):
    return capture(minilm, BATCH)


def test_attention_times_values_is_the_heads_real_output(minilm, trace):
    layers = minilm.network.encoder.layer
    seen = []
    hooks = [
        find_projection(minilm, f"encoder.layer.{place}.attention.self").register_forward_hook(
            lambda module, given, made: seen.append(given[0])
        )
        for place in range(len(layers))
    ]
    ids = minilm.tokenizer(BATCH, padding=True, return_tensors="pt")
    with torch.no_grad():
        minilm.network(**ids)
    for hook in hooks:
        hook.remove()
    real = trace.queries.real[..., None]
    for attention, values, given in zip(trace.attention, trace.values, seen, strict=True):
        heads = (attention @ values).transpose(1, 2).flatten(2)
        assert ((heads - given) * real).norm() <= 1e-5 * (given * real).norm()


def test_effective_attention_gives_the_same_output_in_a_padded_batch(trace):
    maps = view(trace, "effective")
    for place, label in enumerate(trace.layers):
        weights, context = maps.layer(label).double(), trace.context[place].double()
        error = (weights @ trace.values[place].double() - context).norm(dim=(-2, -1))
        assert (error / context.norm(dim=(-2, -1))).max() <= 1e-5
        assert not weights.masked_fill(trace.visible[place][:, None], 0).any()
    assert maps.diagnostics["rank"].amax((1, 2)).tolist() == [32, 32, 32, 6]
    assert maps.diagnostics["null"].amax((1, 2)).tolist() == [*(trace.keys.counts[:3] - 32).tolist(), 0]


def test_effective_attention_equals_a_decomposition_in_float64(trace):
    maps = view(trace, "effective")
    for layer, example, head in ((0, 0, 3), (2, 1, 7), (3, 2, 4), (5, 3, 11)):
        seen = trace.keys.real[example]
        rows = trace.attention[layer][example, head][seen][:, seen].double()
        values = trace.values[layer][example, head][seen].double()
        wanted = torch.stack([literal.project(row, values) for row in rows])
        found = maps.layer(layer)[example, head][seen][:, seen].double()
        assert (found - wanted).norm() <= 1e-5 * wanted.norm()
        assert (found - wanted).abs().max() <= 1e-6


def test_a_paragraph_has_the_same_maps_alone_or_in_a_batch(minilm, trace):
    together = view(trace, "effective").weights
    for place, text in enumerate(BATCH):
        alone = view(capture(minilm, text), "effective").weights[0]
        many = alone.shape[-1]
        apart = (together[place, ..., :many, :many] - alone).norm()
        assert apart <= 1e-4 * alone.norm()  # two float32 runs through six layers


def test_the_papers_padding_changes_the_output_of_a_real_model(minilm):
    trace = capture(minilm, TEXTS[0], keep=("values", "pads"), pad_to=128)
    assert view(trace, "effective:keys=padded").diagnostics["residual"].max() <= 1e-5
    assert view(trace, "effective:keys=paper").diagnostics["residual"].mean() > 1e-3
