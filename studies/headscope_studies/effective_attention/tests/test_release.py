"""The path of the published code, which feeds its masked attention on."""

import torch

import headscope as hs
from headscope_studies.effective_attention.runs.release import compare_paths
from tests.measuring.data import examples
from tests.models import tiny

WIDTH = 40


def test_the_first_layer_is_that_of_the_untouched_pass_and_later_ones_are_not():
    apart = compare_paths(tiny("bert"), examples(5), WIDTH)
    assert (apart.isel(layer=0) < 1e-5).all()
    assert (apart.isel(layer=slice(1, None)) > 1e-3).all()


def test_the_second_layer_is_computed_from_masked_effective_attention():
    """Slow and literal: A of the second layer of a pass whose first layer wrote A_eff·V without columns of padding."""
    model, batch = tiny("bert"), examples(3)
    options = {"keep": ("values", "pads"), "pad_to": WIDTH, "layers": 0}
    first = hs.capture(model, batch, **options)
    masked = hs.view(first, "effective:keys=paper").layer(0)
    with hs.edited(model, "effective_attention:keys=paper"):
        trace = hs.capture(model, batch, keep=("attention",), pad_to=WIDTH)
    bert = model.network
    layer = bert.encoder.layer[0]
    inputs = model.tokenizer(
        [(item.text, item.pair) if item.pair else item.text for item in batch],
        padding="max_length",
        max_length=WIDTH,
        return_tensors="pt",
    )
    with torch.no_grad():
        hidden = bert.embeddings(inputs["input_ids"], token_type_ids=inputs["token_type_ids"])
        context = (masked @ first.values[0]).transpose(1, 2).flatten(2)
        attended = layer.attention.output(context, hidden)
        hidden = layer.output(layer.intermediate(attended), attended)
        own = bert.encoder.layer[1].attention.self
        split = lambda states: states.unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)  # noqa: E731
        scores = split(own.query(hidden)) @ split(own.key(hidden)).mT / own.attention_head_size**0.5
        hidden_keys = ~inputs["attention_mask"].bool()[:, None, None]
        expected = scores.masked_fill(hidden_keys, -torch.inf).softmax(-1)
    real = trace.queries.real
    for row in range(len(batch)):
        torch.testing.assert_close(
            trace.attention[1][row][:, real[row]], expected[row][:, real[row]], atol=1e-5, rtol=0
        )
