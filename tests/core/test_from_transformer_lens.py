"""Traces from caches of TransformerLens: the patterns in them, and those of a capture of the same network."""

import sys

import pytest
import torch
import transformers

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.models import network, text, tokenizer

transformer_lens = pytest.importorskip("transformer_lens", reason="pip install headscope[transformerlens]")
bridges = pytest.importorskip("transformer_lens.model_bridge")
hooked_only = pytest.mark.skipif(
    transformer_lens.__name__ + ".HookedTransformer" not in sys.modules, reason="TransformerLens 4 has bridges only"
)
IDS = torch.randint(3, 40, (2, 12), generator=torch.Generator().manual_seed(0))
CLASSES = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "gemma2": "Gemma2ForCausalLM"}
SMALL = {"n_layers": 2, "d_model": 32, "n_ctx": 64, "d_head": 8, "n_heads": 4, "d_mlp": 48, "d_vocab": 40}


def hooked(**options):
    """A HookedTransformer with random weights, wide enough for attention to be far from uniform."""
    torch.manual_seed(0)
    config = transformer_lens.HookedTransformerConfig(**SMALL, act_fn="gelu", device="cpu", seed=0, **options)
    with pytest.warns(DeprecationWarning, match="HookedTransformer is deprecated"):
        model = transformer_lens.HookedTransformer(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("W_Q", "W_K", "sinks")):
                weight.normal_()
    return model


WINDOWS = {"use_local_attn": True, "window_size": 4, "attn_types": ["local", "global"]}
GEMMA = {
    "n_key_value_heads": 2, "positional_embedding_type": "rotary", "rotary_dim": 8, "normalization_type": "RMS",
    "attn_scores_soft_cap": 5.0, **WINDOWS,
}  # fmt: skip
HOOKED = {"gpt2": {}, "gemma2": GEMMA, "gpt_oss": {"use_attention_sinks": True, **WINDOWS}}


def without(cache, *names):
    return {name: tensor for name, tensor in cache.items() if not name.endswith(names)}


@hooked_only
@pytest.mark.parametrize("kind", HOOKED)
def test_a_cache_of_a_hooked_transformer_is_a_trace(kind):
    model = hooked(**HOOKED[kind])
    with torch.no_grad():
        _, cache = model.run_with_cache(IDS)
    trace = Trace.from_transformer_lens(model, cache, IDS)
    for layer in range(2):
        assert torch.equal(trace.attention[layer], cache["pattern", layer])
        assert torch.equal(trace.context[layer], cache["z", layer].transpose(1, 2))
        written = (
            torch.einsum("bhqv,hvx->bqx", trace.context[layer], trace.output[layer]) + model.blocks[layer].attn.b_O
        )
        torch.testing.assert_close(written, cache["attn_out", layer])
    assert trace.queries.text[0] == [str(number) for number in IDS[0].tolist()]
    assert int(trace.visible[0].sum(-1).max()) == (4 if kind != "gpt2" else 12)
    assert int(trace.visible[1].sum(-1).max()) == 12
    assert trace.group == (2 if kind == "gemma2" else 1)
    assert "checked" not in repr(trace)
    effective = view(trace, "effective")
    torch.testing.assert_close(effective.layer(1) @ trace.values[1], trace.context[1], atol=1e-4, rtol=1e-3)


@hooked_only
@pytest.mark.parametrize("dropped", [("hook_pattern",), ("hook_attn_scores",), ("hook_pattern", "hook_attn_scores")])
@pytest.mark.parametrize("kind", HOOKED)
def test_what_a_cache_lacks_follows_from_the_config(kind, dropped):
    model = hooked(**HOOKED[kind])
    with torch.no_grad():
        _, cache = model.run_with_cache(IDS)
    whole = Trace.from_transformer_lens(model, cache, IDS)
    part = Trace.from_transformer_lens(model, without(cache, *dropped), IDS)
    for layer in range(2):
        torch.testing.assert_close(part.attention[layer], whole.attention[layer])
        assert torch.equal(part.visible[layer], whole.visible[layer])


@hooked_only
def test_layers_keep_their_numbers_and_a_row_needs_no_batch_axis():
    model = hooked()
    with torch.no_grad():
        _, cache = model.run_with_cache(IDS[:1], names_filter=lambda name: ".1.attn" in name, remove_batch_dim=True)
    trace = Trace.from_transformer_lens(model, cache, [str(number) for number in IDS[0].tolist()])
    assert (trace.layers, trace.modules) == ((1,), ("blocks.1.attn",))
    assert torch.equal(trace.attention[0][0], cache["pattern", 1])


@hooked_only
def test_a_hook_that_changes_what_heads_write_is_an_error():
    model = hooked()
    model.add_hook("blocks.1.attn.hook_z", lambda value, hook: value * 0.5)
    with torch.no_grad():
        _, cache = model.run_with_cache(IDS)
    with pytest.raises(InputError, match=r"layer 1 is not the context.*times hook_v is not hook_z: did a hook change"):
        Trace.from_transformer_lens(model, cache, IDS)
    assert "A·V not checked" in repr(Trace.from_transformer_lens(model, without(cache, "hook_z"), IDS))


@hooked_only
def test_patterns_of_alibi_are_not_guessed_from_queries_and_keys():
    model = hooked(positional_embedding_type="alibi")
    with torch.no_grad():
        _, cache = model.run_with_cache(IDS)
    assert torch.equal(Trace.from_transformer_lens(model, cache, IDS).attention[0], cache["pattern", 0])
    with pytest.raises(InputError, match=r"holds no hook_pattern, and with alibi queries and keys alone do not say"):
        Trace.from_transformer_lens(model, without(cache, "hook_pattern"), IDS)


def bridge(kind, folder):
    """A bridge over a tiny network of transformers, and a model of the same network."""
    inner = getattr(transformers, CLASSES[kind])(network(kind).config).eval()
    with torch.no_grad():
        for name, weight in inner.named_parameters():
            if weight.ndim > 1 and "embed" not in name and "wte" not in name:
                weight.mul_(20)
    inner.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    model = load(folder, device="cpu")
    return bridges.TransformerBridge.boot_transformers(str(folder), device="cpu"), model


def encode(texts, **options):
    return tokenizer()(texts, return_tensors="pt", padding=True, **options)


@pytest.mark.parametrize(("kind", "side"), [*((kind, "right") for kind in CLASSES), ("llama", "left")])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_cache_of_a_bridge_gives_the_captured_trace(kind, side, tmp_path):
    bridged, model = bridge(kind, tmp_path)
    encoded = encode([text(9), text(5)], padding_side=side)
    with torch.no_grad():
        _, cache = bridged.run_with_cache(encoded["input_ids"], attention_mask=encoded["attention_mask"])
    trace = Trace.from_transformer_lens(bridged, cache, encoded["input_ids"])
    captured = capture(model, {name: encoded[name] for name in ("input_ids", "attention_mask")})
    for name in ("attention", "values", "context", "output"):
        for mine, theirs in zip(getattr(trace, name), getattr(captured, name), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
    assert all(torch.equal(*pair) for pair in zip(trace.visible, captured.visible, strict=True))
    assert trace.keys.text == captured.keys.text
    assert torch.equal(trace.keys.real, captured.keys.real)
    for lens in ("effective", "norm"):
        torch.testing.assert_close(view(trace, lens).weights, view(captured, lens).weights, atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_bridge_is_not_asked_for_what_its_config_does_not_say(tmp_path):
    bridged, _ = bridge("gemma2", tmp_path)
    ids = encode([text(9), text(5)])["input_ids"]
    with torch.no_grad():
        _, cache = bridged.run_with_cache(ids)
    with pytest.raises(InputError, match=r"Row.* 1 end in the token of padding.*Run it with attention_mask="):
        Trace.from_transformer_lens(bridged, cache, ids)
    rows = [["a"] * 11, ["b"] * 7]
    assert Trace.from_transformer_lens(bridged, cache, rows).keys.counts.tolist() == [11, 7]
    with pytest.raises(InputError, match=r"config of a TransformerBridge does not say which keys.*hook_attn_scores in"):
        Trace.from_transformer_lens(bridged, without(cache, "hook_attn_scores"), rows)
    with pytest.raises(InputError, match=r"queries attend to keys that visible= hides"):
        Trace.from_transformer_lens(bridged, cache, rows, visible=[torch.eye(11).bool().expand(2, 11, 11)] * 2)
    with pytest.raises(InputError, match=r"no hook_pattern, and with a TransformerBridge queries and keys alone"):
        Trace.from_transformer_lens(bridged, without(cache, "hook_pattern"), rows)


@pytest.mark.parametrize("cache", [{}, {"blocks.0.attn.hook_pattern": torch.ones(1, 1, 1, 1)}])
def test_a_cache_without_values_is_an_error(cache):
    class Named:
        cfg, blocks = None, ()

    with pytest.raises(InputError, match=r"no values of attention \(blocks\.\*\.attn\.hook_v\).*names_filter pass"):
        Trace.from_transformer_lens(Named(), cache, ["a"])


def test_anything_else_is_an_error_that_names_the_extra():
    with pytest.raises(InputError, match=r"Expected a model of TransformerLens and its cache.*headscope\[transformer"):
        Trace.from_transformer_lens(None, [], ["a"])
