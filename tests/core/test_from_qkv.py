"""Traces from queries, keys and values: the same as those of a capture."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from math import sqrt

import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.provenance import read_provenance
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.results.store import open_result, save
from tests.models import batch, network, text, tiny, tokenizer

ABC = ["a", "b", "c"]


@dataclass
class Seen:
    """What an engine's attention layers are given, and what they write."""

    queries: list = field(default_factory=list)
    keys: list = field(default_factory=list)
    values: list = field(default_factory=list)
    context: list = field(default_factory=list)


@contextmanager
def watching(model):
    """Queries, keys and values as attention receives them, after rotary positions."""
    seen = Seen()

    def attend(module, query, key, value, mask, scaling, **options):
        groups = query.shape[1] // key.shape[1]
        scores = query @ key.repeat_interleave(groups, 1).mT * scaling
        if (cap := getattr(module, "attn_logit_softcapping", None)) is not None:
            scores = cap * torch.tanh(scores / cap)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if mask is None else mask
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        if (sinks := getattr(module, "sinks", None)) is not None:
            scores = torch.cat([scores, sinks[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
        weights = scores.softmax(-1)[..., : key.shape[2]]
        context = weights @ value.repeat_interleave(groups, 1)
        for name, tensor in (("queries", query), ("keys", key), ("values", value), ("context", context)):
            getattr(seen, name).append(tensor)
        return context.transpose(1, 2).contiguous(), None

    AttentionInterface.register("watched", attend)
    AttentionMaskInterface.register("watched", sdpa_mask)
    before = model.network.config._attn_implementation
    model.network.set_attn_implementation("watched")
    try:
        yield seen
    finally:
        model.network.set_attn_implementation(before)


def rules(kind, config):
    """What the config of a kind says of its scores."""
    if kind == "llama":
        return {"scale": 1 / sqrt(config.head_dim)}
    window = [config.sliding_window if layer == "sliding_attention" else None for layer in config.layer_types]
    if kind == "gpt_oss":
        return {"scale": 1 / sqrt(config.head_dim), "window": window}
    return {"scale": config.query_pre_attn_scalar**-0.5, "soft_cap": config.attn_logit_softcapping, "window": window}


def given(kind, inputs, dtype=torch.float32):
    """A captured trace and what a trace is built from, with as many options as its config says."""
    model = load(network(kind).to(dtype), tokenizer=tokenizer())
    captured = capture(model, inputs)
    encoded = tokenizer()(inputs, return_tensors="pt", padding=True, return_token_type_ids=False)
    with watching(model) as seen, torch.no_grad():
        model.network(**encoded)
    options = rules(kind, model.network.config)
    if kind == "gpt_oss":
        options["sinks"] = [layer.self_attn.sinks for layer in model.network.layers]
    return captured, seen, options


def build(captured, seen, **options):
    return Trace.from_qkv(seen.queries, seen.keys, seen.values, captured.queries, **{"visible": "causal", **options})


def assert_same(trace, captured):
    for name in ("attention", "values", "context"):
        for mine, theirs in zip(getattr(trace, name), getattr(captured, name), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
    assert all(torch.equal(*pair) for pair in zip(trace.visible, captured.visible, strict=True))
    assert trace.group == captured.group


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt_oss"])
def test_queries_keys_and_values_give_the_captured_trace(kind):
    captured, seen, options = given(kind, batch(kind))
    trace = build(captured, seen, context=seen.context, output=list(captured.output), **options)
    assert_same(trace, captured)
    for lens in ("raw", "effective", "norm", "null", "rollout", "flow:depth=last"):
        mine, theirs = (view(traced, lens) for traced in (trace, captured))
        for layer in theirs.layers:
            torch.testing.assert_close(mine.layer(layer), theirs.layer(layer), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("inputs", [[text(6)], batch("bert")])
def test_the_linear_layers_of_bert_give_the_captured_trace(inputs):
    model = tiny("bert")
    captured = capture(model, inputs)
    encoded = tokenizer()(inputs, return_tensors="pt", padding=True)
    projected = {"query": [], "key": [], "value": []}
    hooks = [
        getattr(layer.attention.self, name).register_forward_hook(
            lambda _, __, output, kept=kept: kept.append(output.unflatten(-1, (4, -1)).transpose(1, 2))
        )
        for layer in model.network.encoder.layer
        for name, kept in projected.items()
    ]
    with torch.no_grad():
        model.network(**encoded)
    for hook in hooks:
        hook.remove()
    trace = Trace.from_qkv(
        *projected.values(), captured.queries, scale=1 / sqrt(8), visible="all", context=list(captured.context)
    )
    assert_same(trace, captured)


@pytest.mark.parametrize(
    ("kind", "forgotten"), [("gemma2", "soft_cap"), ("gemma2", "window"), ("gpt_oss", "sinks"), ("gpt_oss", "window")]
)
def test_a_forgotten_rule_is_an_error_that_names_the_layer(kind, forgotten):
    captured, seen, options = given(kind, [text(12)])
    options[forgotten] = None
    name = forgotten.replace("_", " ")
    said = rf"A·V of layer 0 is not the context.*Computed with.*no {name}.*Likely causes: another scale; a soft cap"
    with pytest.raises(InputError, match=said):
        build(captured, seen, context=seen.context, **options)


@pytest.mark.parametrize("wrong", ["scale", "before rotary positions", "mask", "order of heads"])
def test_other_mistakes_are_errors_too(wrong):
    captured, seen, options = given("llama", [text(12)])
    if wrong == "scale":
        options["scale"] *= 1.01
    elif wrong == "mask":
        options["visible"] = "all"
    elif wrong == "order of heads":
        seen.queries = [layer.unflatten(1, (2, 2)).transpose(1, 2).flatten(1, 2) for layer in seen.queries]
    else:
        seen.queries = [layer.roll(1, dims=2) for layer in seen.queries]
    with pytest.raises(InputError, match=r"A·V of layer 0 is not the context that was given: it differs by"):
        build(captured, seen, context=seen.context, **options)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_each_precision_is_compared_with_its_own_rounding(dtype):
    captured, seen, options = given("llama", batch("llama"), dtype)
    trace = build(captured, seen, context=seen.context, **options)
    assert trace.attention[1].dtype == dtype
    torch.testing.assert_close(trace.attention[1], captured.attention[1], atol=1e-2, rtol=1e-2)  # bfloat16: 2⁻⁸
    options["scale"] *= 1.3
    with pytest.raises(InputError, match=r"A·V of layer 0 is not the context"):
        build(captured, seen, context=seen.context, **options)


def test_one_wrong_head_is_named():
    captured, seen, options = given("llama", [text(12)])
    seen.context[1] = seen.context[1].clone()
    seen.context[1][:, 2] *= 1.001
    with pytest.raises(InputError, match=r"layer 1.*in head 2.*\(heads 2 differ\)"):
        build(captured, seen, context=seen.context, **options)


def test_a_trace_says_whether_it_was_checked(tmp_path):
    captured, seen, options = given("llama", [text(5)])
    bare, checked = build(captured, seen, **options), build(captured, seen, context=seen.context, **options)
    assert repr(bare).endswith("values; A·V not checked)")
    assert "checked" not in repr(checked)
    assert bare.context is None
    facts = read_provenance(open_result(save(view(bare, "raw"), tmp_path / "bare.nc")))
    assert facts["context"] == "A·V not checked"
    assert facts["scores"] == {"scale": options["scale"]}
    assert checked.source.describe()["context"].startswith("A·V differs by")


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def simple(**options):
    tensors = random(1, 4, 3, 8), random(1, 2, 3, 8, seed=1), random(1, 2, 3, 5, seed=2)
    changed = {name: options.pop(name) for name in ("queries", "keys", "values", "tokens") if name in options}
    names = dict(zip(("queries", "keys", "values"), ([tensor] for tensor in tensors), strict=True))
    return Trace.from_qkv(**{**names, "tokens": ABC, "scale": 0.5, "visible": "causal", **changed, **options})


def test_a_bias_is_added_to_the_scores_after_the_cap():
    bias = random(1, 4, 3, 3, seed=3)
    trace = simple(bias=[bias], soft_cap=2, visible="all")
    scores = random(1, 4, 3, 8) @ random(1, 2, 3, 8, seed=1).repeat_interleave(2, 1).mT * 0.5
    torch.testing.assert_close(trace.attention[0], (2 * torch.tanh(scores / 2) + bias).softmax(-1))
    shared = simple(bias=[bias[:, :1]], visible="all").attention[0]
    torch.testing.assert_close(shared, simple(bias=[bias[:, :1].expand(1, 4, 3, 3)], visible="all").attention[0])


def test_a_window_counts_keys_the_query_included():
    trace = simple(window=2)
    assert trace.visible[0][0].tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    assert torch.equal(trace.attention[0] > 0, trace.visible[0][:, None].expand(1, 4, 3, 3))


def test_queries_of_the_last_tokens_see_all_before_them():
    trace = simple(queries=[random(1, 4, 2, 8)], tokens=["b", "c"], key_tokens=ABC)
    assert trace.visible[0][0].tolist() == [[True, True, False], [True, True, True]]


def test_padding_gets_no_weight_and_half_precision_stays():
    halves = {name: [random(2, 2, 3, 8).bfloat16()] for name in ("queries", "keys", "values")}
    trace = simple(**halves, tokens=[ABC, ["a", "b"]], visible="all")
    assert trace.attention[0].dtype == torch.bfloat16
    assert not trace.attention[0][1, :, :, 2].any()
    assert not trace.attention[0][1, :, 2].any()
    assert not trace.values[0][1, :, 2].any()


def nan():
    return random(1, 4, 3, 8).index_fill(2, torch.tensor([0]), torch.nan)


HIDING = torch.zeros(1, 1, 3, 3).index_fill(3, torch.tensor([2]), torch.finfo(torch.float32).min)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"queries": [nan()]}, r"queries\[0\] holds 32 values that are NaN or infinite"),
        ({"queries": [random(3, 32)]}, r"queries\[0\] has shape \[3, 32\].*unflatten\(-1, \(heads, -1\)\)\.transpose"),
        ({"keys": [random(1, 2, 3, 8)] * 2}, r"keys has 2 layer\(s\), but queries has 1"),
        ({"keys": [random(1, 2, 3, 4)]}, r"In layer 0 the shapes do not fit: queries \[1, 4, 3, 8\], keys \[1, 2, 3"),
        ({"queries": [random(1, 3, 3, 8)]}, r"3 query heads cannot share 2 key heads"),
        (
            {"queries": [random(1, 4, 3, 8), random(1, 2, 3, 8)], "keys": [random(1, 2, 3, 8)] * 2,
             "values": [random(1, 2, 3, 8)] * 2},
            r"Layer 1 has queries \[1, 2, 3, 8\].*Give the layers of one site",
        ),
        ({"scale": None}, r"scale must be a positive number, or a list with one for each of 1 layers, but got None"),
        ({"scale": [1.0, 2.0]}, r"scale must be a positive number.*but got \[1\.0, 2\.0\]"),
        ({"soft_cap": -50}, r"soft_cap must be a positive number.*None for a layer without.*got -50"),
        ({"window": 1.5}, r"window\[0\] is 1\.5, not a number of keys"),
        ({"window": 2, "visible": "all"}, r"under a causal mask.*say visible='causal'"),
        ({"visible": None}, r"Say which keys a query sees: visible='causal'"),
        ({"sinks": [random(3)]}, r"sinks\[0\] has shape \[3\], which does not fit \[4\]"),
        ({"sinks": random(4)}, r"sinks must be a list with a tensor, or None, for each of 1 layers"),
        ({"bias": [random(1, 4, 2, 3)]}, r"bias\[0\] has shape \[1, 4, 2, 3\], which does not fit \[1, 4, 3, 3\]"),
        ({"bias": [HIDING]}, r"bias\[0\] hides keys\. Say which keys a query sees with visible="),
        ({"context": [random(1, 4, 3, 8)]}, r"context has the shapes \[1, 4, 3, 8\], but the layers need \[1, 4, 3, 5"),
        ({"tokens": ["a"] * 4}, r"tokens has 1 row\(s\) of up to 4 tokens, but the maps are for 1 row"),
        ({"queries": [random(1, 4, 2, 8)], "tokens": ["b", "c"]}, r"There are 2 queries for 3 keys; give the tokens"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error(options, sentence):
    with pytest.raises(InputError, match=sentence):
        simple(**options)
