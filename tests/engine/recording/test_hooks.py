"""Models that bypass the attention interface and are recorded with hooks; see also tests/laws/test_families.py."""

import sys
import threading

import pytest
import torch
import transformers

import headscope.families
from headscope.core.errors import CaptureError, DataWarning
from headscope.core.family import Family, Hooks
from headscope.engine.capture import capture, record_calls
from headscope.engine.load import find_family, load
from headscope.engine.model import Model
from headscope.engine.recording.recorder import check_recording
from tests.models import KINDS, SIZE, SMALL, batch, network, text, tiny, tokenizer

HEARD = [kind for kind in KINDS if find_family(kind).hooks]
PUT_ON = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs")
REMBERT = '''"""RemBERT."""

from headscope.core.family import Family, Hooks


class Rembert(Family):
    """As BERT, with attention of its own."""

    kinds = ("rembert",)
    projection = "../output/dense"
    hooks = Hooks("RemBertSelfAttention", values="value")
'''


def fresh(kind, **changes):
    return load(network(kind, **changes), tokenizer=tokenizer())


def built(kind, **config):
    torch.manual_seed(0)
    settings = transformers.AutoConfig.for_model(kind, **{**SMALL, **SIZE, "max_position_embeddings": 64, **config})
    return transformers.AutoModel.from_config(settings).eval()


def rembert():
    return built("rembert", input_embedding_size=32, pad_token_id=0, bos_token_id=2, eos_token_id=3)


def hooks_on(network):
    return [dict(getattr(module, name)) for module in network.modules() for name in PUT_ON]


def layers(network):
    return next(module for module in network.modules() if isinstance(module, torch.nn.ModuleList))


def same(left, right):
    return all(torch.equal(a, b) for a, b in zip(left.attention, right.attention, strict=True))


def test_six_model_types_are_recorded_by_hooks():
    assert sorted(HEARD) == ["bloom", "deberta-v2", "gpt_neo", "gptj", "mpnet", "xlnet"]


def test_a_family_added_in_one_file_is_captured(tmp_path, monkeypatch):
    with pytest.raises(CaptureError, match=r"families/rembert\.py that says where.*families/gptj\.py is the shortest"):
        capture(load(rembert(), tokenizer=tokenizer()), text(6))
    (tmp_path / "rembert.py").write_text(REMBERT, encoding="utf-8")
    monkeypatch.setattr(headscope.families, "__path__", [*headscope.families.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "headscope.families.rembert", raising=False)
    model = load(rembert(), tokenizer=tokenizer())
    trace = capture(model, [text(6), text(9)])
    assert type(model.family).__name__ == "Rembert"
    assert torch.equal(trace.visible[0].any(1), trace.keys.real)
    entered = []
    dense = model.network.encoder.layer[1].attention.output.dense
    dense.register_forward_hook(lambda _, inputs, output: entered.append((inputs[0], output)))
    with torch.no_grad():
        model.network(**tokenizer()([text(6), text(9)], padding=True, return_tensors="pt"))
    ((inputs, output),) = entered
    heads = (trace.attention[1] @ trace.values[1]).transpose(1, 2).flatten(2)
    written = torch.einsum("bhqv,hvx->bqx", trace.context[1], trace.output[1]) + dense.bias
    real = trace.queries.real
    torch.testing.assert_close(heads[real], inputs[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(written[real], output[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", HEARD)
def test_hooks_are_removed_after_a_capture_and_after_an_error(kind):
    model = fresh(kind)
    own = model.network.register_forward_hook(lambda *_: None)
    before = hooks_on(model.network)
    capture(model, text(5))
    assert hooks_on(model.network) == before

    def fail(*_):
        raise KeyboardInterrupt

    model.network.train()
    broken = layers(model.network)[1].register_forward_pre_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        capture(model, text(5))
    broken.remove()
    assert hooks_on(model.network) == before
    assert all(module.training for module in model.network.modules())
    assert model.network.config._attn_implementation == "eager"
    own.remove()


@pytest.mark.parametrize("kind", HEARD)
def test_two_threads_record_only_their_own_calls(kind):
    model, ids = fresh(kind), torch.tensor([[2, 7, 8, 9, 3]])
    expected = capture(model, text(6)), capture(model, text(9))
    with torch.no_grad():
        plain = model.network(ids)
    during = []

    def meanwhile():
        with torch.no_grad():
            during.extend([capture(model, text(9)), model.network(ids)])

    def pause(*_):
        hook.remove()
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()

    hook = layers(model.network)[0].register_forward_hook(pause)
    first = capture(model, text(6))
    second, beside = during
    assert same(first, expected[0])
    assert same(second, expected[1])
    assert torch.equal(beside.last_hidden_state, plain.last_hidden_state)
    assert beside.get("attentions") is None


@pytest.mark.parametrize("kind", HEARD)
def test_concurrent_captures_do_not_mix(kind):
    model, lengths = fresh(kind), [4, 7, 10, 13]
    expected = {words: capture(model, text(words)) for words in lengths}
    result = {}
    threads = [
        threading.Thread(target=lambda n=words: result.update({n: capture(model, text(n))})) for words in lengths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(result[words], expected[words]) for words in lengths)
    assert not any(hooks_on(model.network))


@pytest.mark.parametrize("kind", HEARD)
def test_a_capture_runs_without_dropout(kind):
    model = fresh(kind)
    calm = capture(model, text(5))
    model.network.train()
    assert same(capture(model, text(5)), calm)


@pytest.mark.parametrize("kind", HEARD)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_are_captured(kind, dtype):
    trace = capture(load(network(kind).to(dtype), tokenizer=tokenizer()), batch(kind))
    exact = trace.attention[1].double() @ trace.values[1].double()
    assert trace.attention[0].dtype == dtype
    # GPT-J and GPT-Neo compute scores in float32, and round the heads' sums to the model's dtype
    assert (trace.context[1] - exact).norm() <= (1e-2 if dtype == torch.bfloat16 else 1e-12) * exact.norm()


@pytest.mark.parametrize("kind", HEARD)
def test_a_classification_head_does_not_change_the_trace(kind):
    bare = network(kind)
    topped = transformers.AutoModelForSequenceClassification.from_config(bare.config)
    getattr(topped, topped.base_model_prefix).load_state_dict(bare.state_dict(), strict=False)
    topped.config.pad_token_id = 0
    trace = capture(load(topped.eval(), tokenizer=tokenizer()), text(6), keep=("values",))
    assert same(trace, capture(tiny(kind), text(6)))


@pytest.mark.parametrize("kind", ["gptj", "gpt_neo", "bloom"])
def test_cached_values_are_recorded(kind):
    model, ids = fresh(kind), torch.tensor([[2, 7, 8, 9, 10, 3]])
    whole = capture(model, {"input_ids": ids})
    with torch.no_grad(), record_calls(model, "self") as recorder:
        past = model.network(ids[:, :4], use_cache=True).past_key_values
        model.network(ids[:, 4:], past_key_values=past, use_cache=True)
    check_recording(model, recorder)
    for layer, call in enumerate(recorder.calls[2:]):
        torch.testing.assert_close(call.values, whole.values[layer], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(call.attention, whole.attention[layer][:, :, 4:], atol=1e-6, rtol=0)
        assert torch.equal(call.visible()[0], whole.visible[layer][0, 4:])


def test_values_cached_before_the_capture_are_an_error():
    model, ids = fresh("gptj"), torch.tensor([[2, 7, 8, 9, 10, 3]])
    with torch.no_grad():
        past = model.network(ids[:, :4], use_cache=True).past_key_values
        with (
            pytest.raises(CaptureError, match=r"h\.0\.attn attends to 6 keys, but 2 values were recorded.*cache"),
            record_calls(model, "self"),
        ):
            model.network(ids[:, 4:], past_key_values=past, use_cache=True)


def test_local_layers_of_gpt_neo_have_a_sliding_window():
    trace = capture(tiny("gpt_neo"), text(7))
    apart = torch.arange(9)[:, None] - torch.arange(9)
    assert torch.equal(trace.visible[0][0], apart >= 0)
    assert torch.equal(trace.visible[1][0], (apart >= 0) & (apart < 4))


@pytest.mark.parametrize("kind", HEARD)
def test_padding_on_the_left_is_not_visible(kind):
    ids = torch.tensor([[0, 0, 2, 7, 8, 3], [2, 7, 8, 9, 10, 3]])
    real = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    trace = capture(tiny(kind), {"input_ids": ids, "attention_mask": real})
    causal = kind in ("gptj", "gpt_neo", "bloom")
    expected = torch.ones(6, 6, dtype=torch.bool).tril() if causal else torch.ones(6, 6, dtype=torch.bool)
    assert torch.equal(trace.visible[0], expected & real.bool()[:, None] & real.bool()[:, :, None])
    assert not trace.attention[0].masked_fill(trace.visible[0][:, None], 0).any()


def test_unidirectional_xlnet_sees_no_later_key():
    trace = capture(fresh("xlnet", attn_type="uni"), text(6))  # the library takes one text at a time here
    assert torch.equal(trace.visible[1][0], torch.ones(8, 8, dtype=torch.bool).tril())


def test_xlnet_with_two_streams_gives_the_content_stream():
    ids = torch.tensor([[2, 7, 8, 9, 3]])
    hidden = torch.ones(1, 5, 5).triu()  # nobody sees itself or what comes later
    target = torch.zeros(1, 1, 5)
    target[0, 0, 3] = 1
    model = load(network("xlnet"), tokenizer=tokenizer())
    with pytest.warns(DataWarning, match=r"also computes attention in layer\.\*\.rel_attn .* not the whole model"):
        trace = capture(model, {"input_ids": ids, "perm_mask": hidden, "target_mapping": target})
    assert torch.equal(trace.visible[0][0], torch.ones(5, 5, dtype=torch.bool).tril())  # content always sees itself
    assert not trace.attention[0].masked_fill(trace.visible[0][:, None], 0).any()


def described(network, hooks, projection="../output/dense"):
    """The network with a family made up on the spot."""
    family = type("Made", (Family,), {"kinds": ("made",), "projection": projection, "hooks": hooks})
    return Model(network, tokenizer(), family(), "made")


def test_values_that_are_not_what_the_head_used_are_an_error():
    rotated = built("roformer", embedding_size=32, rotary_value=True)
    plain = built("roformer", embedding_size=32, rotary_value=False)
    hooks = Hooks("RoFormerSelfAttention", values="value")
    assert len(capture(described(plain, hooks), text(6)).attention) == 2
    with pytest.raises(CaptureError, match=r"attention times values is not what the head computed.*'roformer'"):
        capture(described(rotated, hooks), text(6))


def test_a_mask_that_the_module_does_not_take_is_an_error():
    model = described(rembert(), Hooks("RemBertSelfAttention", values="value", mask="mask"))
    with pytest.raises(CaptureError, match=r"RemBertSelfAttention takes no 'mask', so.*It takes: hidden_states, att"):
        capture(model, text(4))


def test_a_module_that_returns_no_weights_is_an_error():
    model = described(rembert(), Hooks("RemBertSelfAttention", values="value", weights=lambda returned: None))
    with pytest.raises(CaptureError, match=r"attention\.self was asked for its attention weights, but returned none"):
        capture(model, text(4))


def test_a_layer_that_is_not_called_is_an_error():
    model = fresh("bloom", pretraining_tp=2, slow_but_exact=True)  # multiplies with the weight of its projection
    with pytest.raises(CaptureError, match=r"h\.0\.self_attention the layer that gives its context was not called"):
        capture(model, text(4))


def test_a_model_that_does_not_run_eagerly_is_an_error():
    config = transformers.FalconConfig(
        **SIZE, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, bos_token_id=2, eos_token_id=3
    )
    model = described(transformers.FalconModel(config), Hooks("FalconAttention", values="query_key_value"), "dense")
    with pytest.raises(CaptureError, match=r"'falcon' runs with 'sdpa' attention.*attn_implementation='eager'"):
        capture(model, text(4))
