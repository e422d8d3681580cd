"""Rollout: answers worked out by hand, a literal loop, inner lenses, layers, sites and errors."""

import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.generate import generate
from headscope.lenses.effective import Effective
from headscope.lenses.gradient import Gradient
from headscope.lenses.norm import Norm
from headscope.lenses.rollout import Rollout
from tests.engine.test_generate import writer
from tests.models import batch, text, tiny
from tests.oracles.rollout import oracle

KEEP = ("values", "output")


def random_trace(layers=12, heads=4, tokens=40, **options):
    generator = torch.Generator().manual_seed(0)
    scores = 4 * torch.randn(layers, 2, heads, tokens, tokens, generator=generator)
    if options:
        scores = scores.masked_fill(~torch.ones(tokens, tokens, dtype=torch.bool).tril(), -torch.inf)
    return Trace.of(list(scores.softmax(-1)), [[str(token) for token in range(tokens)]] * 2, **options)


def literal_loop(trace, residual=0.5):
    """The paper's equation, one layer after the other."""
    joint = None
    for attention in trace.attention:
        mean = attention.double().mean(1)
        mean = (1 - residual) * mean / mean.sum(-1, keepdim=True) + residual * torch.eye(mean.shape[-1])
        joint = mean if joint is None else mean @ joint
        yield joint


def first_unit(output):
    """A target: the first dimension of the first token's hidden state."""
    return output.last_hidden_state[:, 0, 0]


def assert_oracle(trace, lens, atol=1e-6, rtol=1e-5):
    maps = view(trace, lens)
    for label in maps.layers:
        expected = oracle(trace, trace.layers.index(label), lens)
        torch.testing.assert_close(maps.layer(label).double(), expected, atol=atol, rtol=rtol)


def test_two_layers_by_hand():
    first, second = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    maps = view(Trace.of([layer[None, None] for layer in (first, second)], ["a", "b"]), "rollout")
    assert maps.layer(0)[0, 0].tolist() == [[1.0, 0.0], [0.25, 0.75]]
    assert maps.layer(1)[0, 0].tolist() == [[0.625, 0.375], [0.625, 0.375]]
    assert maps.merged


@pytest.mark.parametrize("residual", [0.0, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("visible", ["all", "causal"])
def test_deep_rollout_equals_a_literal_loop(visible, residual):
    trace = random_trace() if visible == "all" else random_trace(visible=visible)
    maps = view(trace, Rollout(residual=residual))
    for label, expected in zip(maps.layers, literal_loop(trace, residual), strict=True):
        assert maps.layer(label).dtype == torch.float32
        assert (maps.layer(label)[:, 0].double() - expected).abs().max() <= 1e-6
        torch.testing.assert_close(maps.layer(label).sum(-1), torch.ones(2, 1, 40))


@pytest.mark.parametrize("heads", ["mean", "each", "each_residual", "printed"])
@pytest.mark.parametrize("signed", ["absolute", "clip", "signed"])
@pytest.mark.parametrize("inner", [Effective(), Effective(keys="paper"), Norm(), Gradient(times_attention=True)])
def test_inner_lenses_equal_the_oracle(inner, signed, heads):
    trace = capture(tiny("bert"), batch("bert"), keep=(*KEEP, "pads"), target=first_unit)
    lens = Rollout(inner=inner, signed=signed, heads=heads, residual=0.4)
    assert view(trace, lens).signed == (signed == "signed" and not isinstance(inner, Norm))
    assert_oracle(trace, lens, atol=1e-5)  # two float32 lenses: the oracle's inner weights are float64


def test_heads_that_the_inner_lens_merges_are_rolled_out_as_one():
    trace = capture(tiny("bert"), batch("bert"), keep=KEEP)
    lens = Rollout(inner=Norm(merge=True))
    assert_oracle(trace, lens)
    with pytest.raises(
        InputError, match=r"heads='each' asks for .* of each head, but the lens 'norm:merge=true' gives"
    ):
        view(trace, Rollout(inner=Norm(merge=True), heads="each"))


def test_a_head_of_the_first_layer_is_its_own_attention():
    trace = capture(tiny("bert"), batch("bert"))
    torch.testing.assert_close(view(trace, "rollout:heads=each").layer(0), trace.attention[0])


def test_the_mean_over_heads_with_their_residual_is_the_rollout():
    trace = random_trace()
    each, merged = view(trace, "rollout:heads=each_residual"), view(trace, "rollout")
    torch.testing.assert_close(each.layer(-1).mean(1, keepdim=True), merged.layer(-1))


def test_rollout_from_any_layer_to_any_layer():
    trace = random_trace(layers=6)
    maps = view(trace, "rollout:start=3")
    upper = Trace.of(trace.attention[3:], trace.queries.text)
    assert maps.layers == (3, 4, 5)
    for label, expected in zip(maps.layers, literal_loop(upper), strict=True):
        assert (maps.layer(label)[:, 0].double() - expected).abs().max() <= 1e-6
    assert_oracle(capture(tiny("modernbert"), batch("modernbert")), Rollout(start=1, receptive_field=True))


def test_layers_that_were_not_captured_are_refused():
    with pytest.raises(InputError, match=r"starts at layer 0, but the lowest of the 2 layers of this trace is 1\."):
        view(capture(tiny("modernbert"), text(3), layers=[1, 2]), "rollout")
    assert view(capture(tiny("modernbert"), text(3), layers=[1, 2]), "rollout:start=1").layers == (1, 2)


def test_uniform_causal_attention_is_uniform_over_the_receptive_field():
    tokens = 7
    mask = torch.ones(tokens, tokens).tril()
    uniform = (mask / mask.sum(-1, keepdim=True))[None, None]
    trace = Trace.of([uniform] * 4, [str(token) for token in range(tokens)], visible="causal")
    plain, corrected = (
        view(trace, "rollout").layer(-1)[0, 0],
        view(trace, "rollout:receptive_field=true").layer(-1)[0, 0],
    )
    assert plain[-1, 0] > 2 * plain[-1, -2]  # the mask alone favors early tokens
    torch.testing.assert_close(corrected, uniform[0, 0])


def test_the_receptive_field_is_as_precise_as_the_maps():
    double = random_trace(layers=3, tokens=9, visible="causal")
    layers = [layer.double() / layer.double().sum(-1, keepdim=True) for layer in double.attention]
    trace = Trace.of(layers, double.queries.text, visible="causal")
    assert_oracle(trace, Rollout(receptive_field=True), atol=1e-14, rtol=1e-12)  # all of it float64


def test_the_reach_of_sliding_windows_grows_with_the_layers():
    maps = view(capture(tiny("mistral"), text(14)), "rollout")
    first, second = (mask.sum(-1).max() for mask in maps.visible)
    assert (first, second) == (4, 7)
    assert torch.equal(maps.layer(1)[:, 0] > 0, maps.visible[1])


@pytest.mark.parametrize(("kind", "site"), [("t5", "decoder"), ("bart", "encoder"), ("vit", "self"), ("gpt2", "self")])
def test_rollout_of_decoders_and_pictures(kind, site):
    trace = capture(tiny(kind), batch(kind), site=site)
    assert_oracle(trace, Rollout(receptive_field=site == "decoder"))


def test_rollout_of_generated_text():
    trace = generate(writer("gpt2"), text(4), max_new_tokens=3)
    maps = view(trace, "rollout")
    torch.testing.assert_close(maps.layer(-1).sum(-1), torch.ones_like(maps.layer(-1).sum(-1)))


def test_cross_attention_has_no_rollout():
    with pytest.raises(InputError, match="site 'cross' they are not"):
        view(capture(tiny("t5"), batch("t5"), site="cross"), "rollout")


@pytest.mark.parametrize("outer", ["rollout", "flow"])
@pytest.mark.parametrize("inner", ["rollout", "flow", "rollout:heads=each", "flow:depth=last"])
def test_weights_that_are_followed_already_are_refused(outer, inner):
    trace = random_trace(layers=2, tokens=4)
    with pytest.raises(InputError, match=rf"but those of '{inner}' reach down to the input already\. Give inner="):
        view(trace, f"{outer}:inner=({inner})")


def test_half_precision_is_rolled_out_in_single():
    trace = random_trace()
    trace = Trace.of([layer.bfloat16() for layer in trace.attention], trace.queries.text)
    maps = view(trace, "rollout")
    assert maps.layer(-1).dtype == torch.float32
    torch.testing.assert_close(maps.layer(-1).sum(-1), torch.ones(2, 1, 40))


def test_rollout_is_measured_beside_other_lenses():
    data = hs.measure(tiny("bert"), batch("bert"), lens=["raw", "rollout"], statistics=["entropy"], progress=False)
    assert data["entropy_n"].sel(lens="rollout", head=0).values.tolist() == [[3, 3]]
    assert data["entropy"].sel(lens="rollout").notnull().sum() == 2  # one map per layer


def test_measuring_says_which_layers_a_rollout_has():
    options = {"lens": "rollout:start=1", "statistics": ["entropy"], "progress": False}
    assert hs.measure(tiny("bert"), batch("bert"), layers=[1], **options)["entropy"].sizes["layer"] == 1
    with pytest.raises(InputError, match=r"'rollout:start=1' has maps of the layers 1 only, but .* Give layers=\[1\]"):
        hs.measure(tiny("bert"), batch("bert"), **options)
