"""Relevance: plain code of our own from the paper, answers by hand, targets that say nothing, and what is refused."""

import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError, NotCaptured
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.lenses.test_rollout import random_trace
from tests.models import batch, network, text, tiny, tokenizer
from tests.oracles.relevance import oracle


def first_unit(output):
    """A target: the first dimension of the first token's hidden state."""
    return output.last_hidden_state[:, 0, 0]


def with_gradient(attention, gradient, tokens="ab", **options):
    return Trace.of([layer[None] for layer in attention], list(tokens), gradient=[g[None] for g in gradient], **options)


def test_two_layers_by_hand():
    attention = torch.tensor([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]])  # two heads
    gradient = torch.tensor([[[2.0, -4.0], [1.0, 9.0]], [[7.0, 3.0], [-1.0, 2.0]]])
    edges = torch.tensor([[0.5, 1.5], [0.5, 0.5]])  # means of [1, −, 1, 0] and [0, 3, −, 1]
    maps = view(with_gradient([attention, attention], [gradient, gradient]), "relevance")
    assert torch.equal(maps.layer(0)[0, 0], torch.eye(2) + edges)
    torch.testing.assert_close(maps.layer(1)[0, 0], torch.eye(2) + 2 * edges + edges @ edges)
    assert maps.merged
    assert not maps.signed


def test_relevance_equals_plain_code_on_eager_attention():
    plain = network("bert")
    plain.set_attn_implementation("eager")
    texts = batch("bert")
    maps = view(capture(tiny("bert"), texts, target=first_unit), "relevance")
    for index, line in enumerate(texts):
        output = plain(**tokenizer()(line, return_tensors="pt"), output_attentions=True)
        gradients = torch.autograd.grad(output.last_hidden_state[0, 0, 0], output.attentions)
        tokens = output.attentions[0].shape[-1]
        relevance = torch.eye(tokens)
        for layer, (attention, gradient) in enumerate(zip(output.attentions, gradients, strict=True)):
            mixing = (gradient[0] * attention[0]).clamp(min=0).mean(0)
            relevance = relevance + mixing @ relevance
            torch.testing.assert_close(
                maps.layer(layer)[index, 0, :tokens, :tokens], relevance.detach(), atol=1e-5, rtol=1e-5
            )
    assert (maps.weights[:, -1, 0] - torch.eye(maps.weights.shape[-1])).abs().max() > 0.01  # the target says something


@pytest.mark.parametrize(("kind", "site"), [("t5", "decoder"), ("gpt2", "self"), ("vit", "self"), ("mistral", "self")])
def test_relevance_of_decoders_pictures_and_windows_equals_the_oracle(kind, site):
    def score(output):
        return output.last_hidden_state[:, -1, 0]

    trace = capture(tiny(kind), batch(kind), site=site, target=score)
    maps = view(trace, "relevance")
    for index, label in enumerate(maps.layers):
        torch.testing.assert_close(maps.layer(label).double(), oracle(trace, index, hs.Lens.from_spec("relevance")))
        assert not maps.layer(label).masked_fill(maps.visible[index][:, None], 0).any()


def test_a_target_that_does_not_depend_on_the_text_leaves_each_token_with_itself():
    trace = capture(tiny("bert"), batch("bert"), target=lambda output: 0 * output.last_hidden_state[:, 0, 0])
    maps = view(trace, "relevance")
    for layer in maps.layers:
        assert torch.equal(maps.layer(layer)[:, 0], torch.diag_embed(trace.queries.real.float()))
    assert not maps.diagnostics["others"].any()
    assert not view(trace, "relevance:identity=false").weights.any()


def test_the_last_row_of_a_bert_that_reads_cls_is_the_only_one_that_changes_in_the_last_layer():
    maps = view(capture(tiny("bert"), batch("bert"), target=first_unit), "relevance")
    below, last = maps.layer(0), maps.layer(1)
    assert torch.equal(below[:, :, 1:], last[:, :, 1:])
    assert (last[:, :, 0] >= below[:, :, 0]).all()
    assert (last[:, :, 0] > below[:, :, 0]).any()


def test_the_balance_with_the_identity_depends_on_the_scale_of_the_target():
    once, twice = (
        view(capture(tiny("bert"), text(6), target=lambda output, scale=scale: scale * first_unit(output)), "relevance")
        for scale in (1, 2)
    )
    assert (twice.diagnostics["others"] > once.diagnostics["others"]).all()
    eye = torch.eye(8)
    torch.testing.assert_close(twice.layer(0)[0, 0] - eye, 2 * (once.layer(0)[0, 0] - eye))


def test_relevance_begins_at_any_layer():
    trace = random_trace(layers=4, tokens=6)
    generator = torch.Generator().manual_seed(1)
    gradient = [torch.randn(layer.shape, generator=generator) for layer in trace.attention]
    whole = Trace.of(trace.attention, trace.queries.text, gradient=gradient)
    upper = Trace.of(trace.attention[2:], trace.queries.text, gradient=gradient[2:])
    maps = view(whole, "relevance:start=2")
    assert maps.layers == (2, 3)
    assert torch.equal(maps.weights, view(upper, "relevance").weights)


def test_the_graph_multiplies_to_the_relevance():
    maps = view(capture(tiny("bert"), batch("bert"), target=first_unit), "relevance")
    torch.testing.assert_close(maps.graph.layers[1] @ maps.graph.layers[0], maps.layer(1))


def test_relevance_asks_for_a_target():
    with pytest.raises(NotCaptured, match=r"'relevance' needs 'gradient', .* target='predicted'"):
        view(capture(tiny("bert"), text(3)), "relevance")


def test_layers_that_were_not_captured_are_refused():
    trace = capture(tiny("modernbert"), text(3), layers=[1, 2], target=first_unit)
    with pytest.raises(InputError, match=r"relevance starts at layer 0, but the lowest of the 2 layers .* is 1\."):
        view(trace, "relevance")


def test_cross_attention_has_no_relevance():
    with pytest.raises(InputError, match="site 'cross' they are not"):
        view(capture(tiny("t5"), batch("t5"), site="cross", target=first_unit), "relevance")


def test_relevance_is_no_inner_lens():
    with pytest.raises(InputError, match="but those of 'relevance' reach down to the input already"):
        view(capture(tiny("bert"), text(3), target=first_unit), "rollout:inner=relevance")


def test_pruned_heads_are_refused():
    model = load(network("bert"), tokenizer=tokenizer())
    model = hs.prune(model, ["L0H1"])
    with pytest.raises(InputError, match=r"'relevance' merges the heads of each layer, but some .* pruned \(L0H1\)"):
        view(capture(model, text(3), target=first_unit), "relevance")


def test_half_precision_is_followed_in_single():
    trace = random_trace(layers=2, tokens=5)
    half = Trace.of([layer.bfloat16() for layer in trace.attention], trace.queries.text, gradient=list(trace.attention))
    assert view(half, "relevance").layer(-1).dtype == torch.float32
