"""The lenses of what tokens contribute: against plain code from the papers, and what they refuse."""

import pytest
import torch
import transformers
from torch.nn.functional import layer_norm

from headscope.core.errors import InputError, NotCaptured
from headscope.core.lens import view
from headscope.engine.capture import by_layer, capture
from headscope.engine.load import load
from headscope.lenses.rollout import Rollout
from headscope.measuring.measure import measure
from tests.models import KINDS, batch, network, text, tiny, tokenizer

KEEP = ("values", "output", "residual")


def vectors_from_the_papers(bert, inputs, number):
    """T_ij of one layer of BERT, before and after its normalization, and what the block returns; one text.

    Written from Kobayashi et al. (2021) and Ferrando et al. (2022), from hidden states and weights alone.
    """
    with torch.no_grad():
        hidden = bert(**inputs, output_hidden_states=True).hidden_states[number][0]
    layer = bert.encoder.layer[number].attention
    size, heads = len(hidden), layer.self.num_attention_heads

    def project(linear):
        return linear(hidden).view(size, heads, -1).transpose(0, 1)

    with torch.no_grad():
        query, key, value = (project(part) for part in (layer.self.query, layer.self.key, layer.self.value))
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
        matrix = layer.output.dense.weight.T.reshape(heads, -1, hidden.shape[-1])
        before = torch.einsum("hij,hjv,hvx->ijx", weights, value, matrix)
        before[range(size), range(size)] += hidden
        norm, total = layer.output.LayerNorm, before.sum(1) + layer.output.dense.bias
        scale = (total.var(-1, correction=0) + norm.eps).sqrt()
        after = (before - before.mean(-1, keepdim=True)) * norm.weight / scale[:, None, None]
        return after, layer_norm(total, total.shape[-1:], norm.weight, norm.bias, norm.eps)


@pytest.mark.parametrize("number", [0, 1])
def test_in_bert_the_lenses_are_those_of_the_papers(number):
    model = tiny("bert")
    inputs = model.tokenizer([text(12)], return_tensors="pt")
    vectors, result = vectors_from_the_papers(model.network, inputs, number)
    trace = capture(model, text(12), keep=KEEP)
    norms = view(trace, "norm:residual=true")
    torch.testing.assert_close(norms.layer(number)[0, 0], vectors.norm(dim=-1), atol=1e-5, rtol=1e-5)
    near = (result.abs().sum(-1)[:, None] - (result[:, None] - vectors).abs().sum(-1)).clamp(min=0)
    expected = near / near.sum(-1, keepdim=True)
    torch.testing.assert_close(view(trace, "alti").layer(number)[0, 0], expected, atol=1e-5, rtol=1e-5)
    own = vectors[range(len(vectors)), range(len(vectors))]
    mixed = (vectors.sum(1) - own).norm(dim=-1)
    ratio = (mixed / (mixed + own.norm(dim=-1))).mean()
    torch.testing.assert_close(norms.diagnostics["mixing_ratio"][0, number, 0], ratio, atol=1e-5, rtol=1e-5)


def language_model(kind, **changes):
    """A tiny language model in float64, whose head has a bias where its kind has one."""
    torch.manual_seed(0)
    built = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(kind, **{**KINDS[kind], **changes})
    ).double()
    with torch.no_grad():
        for weight in built.parameters():
            weight.mul_(4) if weight.ndim > 1 else weight.add_(torch.randn_like(weight) / 4)
    return load(built.eval(), tokenizer=tokenizer())


@pytest.mark.parametrize(
    "kind", ["gpt2", "llama", "qwen2", "gptj", "cohere", "bloom", "olmo2", "phi3", "gemma", "xlnet"]
)
def test_the_contributions_of_all_heads_and_the_other_parts_sum_to_the_logit(kind):
    model = language_model(kind)
    trace = capture(model, batch("bert"), keep=("values", "output", "readout", "model_output"), target="next")
    maps = view(trace, "logit")
    logits = trace.model_output.logits[range(3), trace.queries.counts - 2].amax(-1)  # before the token that closes
    torch.testing.assert_close(trace.readout.score, logits, rtol=1e-6, atol=1e-6)
    parts = [maps.diagnostics[name][:, 0, 0] for name in ("input", "others", "biases", "head")]
    total = maps.weights.sum((1, 2, 3, 4)) + sum(parts)
    torch.testing.assert_close(total, logits, rtol=1e-5, atol=1e-5)  # RMSNorms compute in float32
    bias = getattr(model.network.get_output_embeddings(), "bias", None)
    assert (maps.diagnostics["head"].abs().max() > 1e-6) == (bias is not None)


def test_what_feed_forwards_make_of_a_weight_is_in_its_gradient_and_not_in_its_direct_contribution():
    model = language_model("gpt2", n_layer=1)
    keep = ("values", "output", "readout")
    trace = capture(model, text(9), keep=keep, target="next:score=logit")
    direct = view(trace, "logit").layer(0).sum((-2, -1))[0]
    gradient = view(trace, "gradient:times_attention=true").layer(0)[0].sum((-2, -1))
    assert direct.abs().max() > 0.01
    assert not torch.allclose(direct, gradient, rtol=0.01)


def test_only_the_row_that_is_read_contributes_to_a_next_word():
    model = language_model("llama")
    trace = capture(model, [text(6), text(9)], keep=("values", "output", "readout"), target="next")
    for row, layer in enumerate(view(trace, "logit").weights):
        rows = layer.abs().sum((0, 1, 3)).nonzero()[:, 0]
        assert rows.tolist() == [int(trace.queries.counts[row]) - 2]


def test_a_head_that_is_not_linear_is_named_and_can_be_linearized():
    torch.manual_seed(0)
    config = transformers.BertConfig(**KINDS["bert"], num_labels=2)
    model = load(transformers.BertForSequenceClassification(config).eval(), tokenizer=tokenizer())
    trace = capture(model, text(9), keep=("values", "output", "readout"), target="predicted")
    with pytest.raises(InputError, match="'logit:head=linearized'"):
        view(trace, "logit")
    maps = view(trace, "logit:head=linearized")
    parts = sum(maps.diagnostics[name][0, 0, 0] for name in ("input", "others", "biases", "head"))
    torch.testing.assert_close(parts + maps.weights.sum().double(), trace.readout.score[0], atol=1e-5, rtol=1e-5)


def test_rows_of_alti_sum_to_one_and_it_follows_to_the_input():
    trace = capture(tiny("llama"), batch("llama"), keep=KEEP)
    real = trace.queries.real.float()
    for layer in view(trace, "alti").weights.unbind(1):
        sums = layer[:, 0].sum(-1)
        torch.testing.assert_close(sums, torch.where(sums > 0, real, 0), atol=1e-5, rtol=0)
        assert (sums > 0).sum() > 0.9 * real.sum()  # a row none of whose vectors comes near to the output has no weight
    for spec in ("rollout:inner=alti,residual=0", "rollout:residual=measured"):
        for layer in view(trace, spec).weights.unbind(1):
            torch.testing.assert_close(layer[:, 0].sum(-1), real, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rollout:inner=alti", "would add it a second time. Give residual=0"),
        ("rollout:inner=(norm:residual=true),residual=measured", "would add it a second time. Give residual=0"),
        ("flow:inner=alti", "would add it a second time. Give residual=0"),
        ("rollout:residual=measured,signed=signed", "does not go with signed='signed'"),
        ("rollout:residual=measured,heads=printed", "does not go with heads='printed'"),
        ("rollout:residual=measured,heads=each_residual", "does not go with heads='each_residual'"),
        ("rollout:inner=relevance", "reach down to the input already"),
        ("rollout:inner=logit", "Give inner= another lens, such as 'alti' or 'norm'"),
    ],
)
def test_what_rollout_cannot_follow_is_refused(spec, words):
    hidden = "last_hidden_state"
    trace = capture(tiny("bert"), text(9), keep=(*KEEP, "readout"), target=lambda output: output[hidden].sum((1, 2)))
    with pytest.raises(InputError) as caught:
        view(trace, spec)
    assert words in str(caught.value)


@pytest.mark.parametrize("spec", ["alti", "norm:residual=true", "rollout:residual=measured"])
def test_in_cross_attention_no_token_has_a_residual(spec):
    trace = capture(tiny("t5"), batch("t5"), site="cross", keep=KEEP)
    with pytest.raises(InputError, match=r"site=…"):
        view(trace, spec)


def test_a_residual_that_is_neither_a_number_nor_measured_is_refused():
    with pytest.raises(InputError, match="must be a number or measured, but got 'guessed'"):
        view(capture(tiny("bert"), text(5)), "rollout:residual=guessed")
    with pytest.raises(InputError, match="a share from 0 to 1 or 'measured', but got 'guessed'"):
        view(capture(tiny("bert"), text(5)), Rollout(residual="guessed"))


def test_a_trace_without_what_is_around_the_heads_says_how_to_capture_it():
    trace = capture(tiny("bert"), text(5))
    with pytest.raises(NotCaptured, match=r"Capture again with keep=\('attention', .*'residual'"):
        view(trace, "alti")
    with pytest.raises(NotCaptured, match=r"target='predicted', keep=\('attention', .*'readout'"):
        view(trace, "logit")
    with pytest.raises(InputError, match="but no target was given"):
        capture(tiny("bert"), text(5), keep=("readout",))
    with pytest.raises(InputError, match="Cannot keep residual"):
        by_layer(tiny("bert"), text(5), see=id, keep=("residual",))


def test_a_model_whose_heads_write_nowhere_that_can_be_followed_says_so():
    mine = network("gpt2")
    for block in mine.h:  # each block returns half of what it did
        block.attn.register_forward_hook(lambda _, __, output: (output[0].tanh(), *output[1:]))
    trace = capture(load(mine, tokenizer=tokenizer()), text(5), keep=KEEP)
    assert trace.residual is None
    with pytest.raises(NotCaptured, match="was not seen to be added to what its residual connection carries"):
        view(trace, "alti")


def test_what_is_changed_in_place_is_kept_as_it_was():
    mine, plain = network("llama"), capture(tiny("llama"), text(7), keep=KEEP)
    for layer in mine.layers:
        layer.forward = in_place(layer)
    trace = capture(load(mine, tokenizer=tokenizer()), text(7), keep=KEEP)
    for ours, theirs in zip(trace.residual, plain.residual, strict=True):
        torch.testing.assert_close(ours.inputs, theirs.inputs)
        torch.testing.assert_close(ours.outputs, theirs.outputs)


def in_place(layer):
    """Llama's layer with sums that overwrite the stream."""

    def forward(hidden_states, **options):
        stream = hidden_states.clone()
        stream += layer.self_attn(hidden_states=layer.input_layernorm(stream), **options)[0]
        stream += layer.mlp(layer.post_attention_layernorm(stream))
        return stream

    return forward


def test_a_selection_of_heads_has_no_residual():
    trace = capture(tiny("bert"), text(5), keep=KEEP, heads=[1])
    with pytest.raises(NotCaptured, match="leave out heads="):
        view(trace, "alti")


def test_a_selection_of_layers_has_that_of_its_layers():
    whole, last = (capture(tiny("albert"), text(5), keep=KEEP, layers=layers) for layers in (None, [2]))
    torch.testing.assert_close(last.residual[0].inputs, whole.residual[2].inputs)


def test_measuring_asks_for_what_the_lens_needs():
    data = measure(tiny("bert"), [text(9), text(7)], lens=["alti", "raw"], statistics=["mixing_ratio", "entropy"])
    assert data["mixing_ratio"].sel(head=0).notnull().all()
    one = view(capture(tiny("bert"), text(9), keep=KEEP), "norm:residual=true").diagnostics["mixing_ratio"]
    two = view(capture(tiny("bert"), text(7), keep=KEEP), "norm:residual=true").diagnostics["mixing_ratio"]
    expected = ((one + two) / 2)[0, :, 0].double()
    found = torch.tensor(data["mixing_ratio"].sel(lens="raw", head=0).squeeze().values)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
