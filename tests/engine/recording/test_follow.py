"""Models that bypass the attention interface, whose softmax is followed; see also tests/laws/test_families.py."""

import threading

import pytest
import torch
import transformers
from torch.nn import functional

from headscope.core.errors import CaptureError, DataWarning
from headscope.engine.capture import capture, record_calls
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.recording.follow import Follower, count_heads, is_followed
from headscope.engine.recording.interface import _give_to_sink
from headscope.engine.recording.recorder import check_recording
from tests.models import KINDS, SIZE, SMALL, VOCAB, batch, network, text, tiny, tokenizer

FOLLOWED = [kind for kind in KINDS if any(is_followed(type(module)) for module in tiny(kind).network.modules())]
PUT_ON = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs")


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


def test_six_model_types_bypass_the_interface():
    assert sorted(FOLLOWED) == ["bloom", "deberta-v2", "gpt_neo", "gptj", "mpnet", "xlnet"]


def test_a_kind_that_no_file_describes_is_captured_with_its_output_projection():
    model = load(rembert(), tokenizer=tokenizer())
    trace = capture(model, [text(6), text(9)])
    assert type(model.family).__name__ == "Common"
    assert torch.equal(trace.visible[0].any(1), trace.keys.real)
    entered = []
    dense = model.network.encoder.layer[1].attention.output.dense
    handle = dense.register_forward_hook(lambda _, inputs, output: entered.append((inputs[0], output)))
    with torch.no_grad():
        model.network(**tokenizer()([text(6), text(9)], padding=True, return_tensors="pt"))
    handle.remove()
    ((inputs, output),) = entered
    heads = (trace.attention[1] @ trace.values[1]).transpose(1, 2).flatten(2)
    written = torch.einsum("bhqv,hvx->bqx", trace.context[1], trace.output[1]) + dense.bias
    real = trace.queries.real
    torch.testing.assert_close(heads[real], inputs[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(written[real], output[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", FOLLOWED)
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


@pytest.mark.parametrize("kind", FOLLOWED)
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


@pytest.mark.parametrize("kind", FOLLOWED)
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


@pytest.mark.parametrize("kind", FOLLOWED)
def test_a_capture_runs_without_dropout(kind):
    model = fresh(kind)
    calm = capture(model, text(5))
    model.network.train()
    assert same(capture(model, text(5)), calm)


@pytest.mark.parametrize("kind", FOLLOWED)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_are_captured(kind, dtype):
    trace = capture(load(network(kind).to(dtype), tokenizer=tokenizer()), batch(kind))
    exact = trace.attention[1].double() @ trace.values[1].double()
    assert trace.attention[0].dtype == dtype
    # GPT-J and GPT-Neo compute scores in float32, and round the heads' sums to the model's dtype
    assert (trace.context[1] - exact).norm() <= (1e-2 if dtype == torch.bfloat16 else 1e-12) * exact.norm()


@pytest.mark.parametrize("kind", FOLLOWED)
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


def test_values_that_were_cached_before_the_capture_are_recorded():
    model, ids = fresh("gptj"), torch.tensor([[2, 7, 8, 9, 10, 3]])
    whole = capture(model, {"input_ids": ids})
    with torch.no_grad():
        past = model.network(ids[:, :4], use_cache=True).past_key_values
        with record_calls(model, "self") as recorder:
            model.network(ids[:, 4:], past_key_values=past, use_cache=True)
    torch.testing.assert_close(recorder.calls[1].values, whole.values[1], atol=1e-5, rtol=1e-5)


def test_local_layers_of_gpt_neo_have_a_sliding_window():
    trace = capture(tiny("gpt_neo"), text(7))
    apart = torch.arange(9)[:, None] - torch.arange(9)
    assert torch.equal(trace.visible[0][0], apart >= 0)
    assert torch.equal(trace.visible[1][0], (apart >= 0) & (apart < 4))


@pytest.mark.parametrize("kind", FOLLOWED)
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


def test_two_streams_of_xlnet_are_two_sites():
    ids = torch.tensor([[2, 7, 8, 9, 3]])
    hidden = torch.ones(1, 5, 5).triu()  # nobody sees itself or what comes later
    target = torch.zeros(1, 1, 5)
    target[0, 0, 3] = 1
    model, inputs = fresh("xlnet"), {"input_ids": ids, "perm_mask": hidden, "target_mapping": target}
    with pytest.warns(DataWarning, match=r"layer\.\*\.rel_attn computes attention in several places"):
        content = capture(model, inputs)
    queries = capture(model, inputs, site="self.2")
    own = model.network(**inputs, output_attentions=True).attentions
    for trace, stream in ((content, 0), (queries, 1)):
        torch.testing.assert_close(trace.attention[1], own[1][stream])
        torch.testing.assert_close(trace.attention[1] @ trace.values[1], trace.context[1])


def test_rotated_values_are_those_that_the_head_used():
    model = load(built("roformer", embedding_size=32, rotary_value=True), tokenizer=tokenizer())
    trace = capture(model, text(6))
    torch.testing.assert_close(trace.attention[1] @ trace.values[1], trace.context[1])
    plain = capture(load(built("roformer", embedding_size=32, rotary_value=False), tokenizer=tokenizer()), text(6))
    assert not torch.allclose(trace.values[0], plain.values[0])


def test_a_projection_that_is_not_called_is_not_found():
    model = fresh("bloom", pretraining_tp=2, slow_but_exact=True)  # multiplies with the weight of its projection
    assert capture(model, text(4)).held == {"attention", "values", "model_output"}
    with pytest.raises(CaptureError, match=r"h\.0\.self_attention no linear layer reads what the heads computed"):
        capture(model, text(4), keep="output")


@pytest.mark.parametrize(("implementation", "alibi"), [("eager", False), ("eager", True), ("sdpa", False)])
def test_falcon_is_captured_whatever_it_runs(implementation, alibi):
    config = transformers.FalconConfig(
        **SIZE, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=alibi, bos_token_id=2, eos_token_id=3
    )
    network = transformers.FalconModel._from_config(config, attn_implementation=implementation).eval()
    model = load(network, tokenizer=tokenizer())
    trace = capture(model, [text(6), text(9)])
    assert torch.equal(trace.visible[0][0, :8, :8], torch.ones(8, 8, dtype=torch.bool).tril())
    assert not trace.attention[0].masked_fill(trace.visible[0][:, None], 0).any()
    assert trace.group == 4  # all heads share one value head
    assert len(trace.output) == 2


class Scores(torch.nn.Module):
    """Attention in the forms in which models write it."""

    num_heads = 4

    def __init__(self, form):
        super().__init__()
        self.form = form

    def forward(self, scores, values):
        if self.form == "sdpa":
            query, key = torch.linalg.qr(torch.randn(8, 8))[0], torch.eye(8)
            return functional.scaled_dot_product_attention(scores @ query, scores @ query @ key, values)
        weights = torch.softmax(scores, dim=-1)
        if self.form == "matmul":
            return weights @ values
        if self.form == "bmm":
            return torch.bmm(weights.flatten(0, 1), values.flatten(0, 1)).view(2, 4, 8, 5)
        if self.form == "einsum":
            weights = functional.dropout(weights.permute(2, 3, 0, 1), training=False)
            return torch.einsum("ijbn,bnjd->bnid", weights, values)
        return (values.mT @ weights.mT).mT  # values first


@pytest.mark.parametrize("form", ["matmul", "bmm", "einsum", "values first", "sdpa"])
def test_attention_is_recognized_however_it_is_written_and_can_be_replaced(form):
    torch.manual_seed(0)
    scores, values, calls = torch.randn(2, 4, 8, 8), torch.randn(2, 4, 8, 5), []
    if form != "sdpa":  # where these are states
        scores[1, ..., 6:] = torch.finfo(torch.float32).min
    module = Scores(form)
    assert is_followed(Scores)

    def halve(call):
        calls.append(call)
        return call.context / 2

    torch.manual_seed(1)
    plain = module(scores, values)
    torch.manual_seed(1)
    with Follower("attention", count_heads(module), halve):
        changed = module(scores, values)
    (call,) = calls
    torch.testing.assert_close(changed, plain / 2)
    torch.testing.assert_close(call.context, plain)
    torch.testing.assert_close(call.attention @ call.values, plain)
    if form != "sdpa":
        torch.testing.assert_close(call.attention, scores.softmax(-1))
        assert torch.equal(call.visible(), (scores > -1e30)[:, 0])


def test_multihead_attention_of_torch_is_written_out():
    torch.manual_seed(0)
    module, states, calls = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval(), torch.randn(2, 7, 32), []
    hidden = torch.zeros(2, 7, dtype=torch.bool)
    hidden[1, 5:] = True

    def note(call):
        calls.append(call)
        return call.context

    with torch.no_grad():
        plain, weights = module(states, states, states, key_padding_mask=hidden, average_attn_weights=False)
        with Follower("attention", count_heads(module), note):
            followed, _ = module(states, states, states, key_padding_mask=hidden, need_weights=False)
    torch.testing.assert_close(followed, plain)
    torch.testing.assert_close(calls[0].attention, weights)
    assert torch.equal(calls[0].visible(), ~hidden[:, None].expand(2, 7, 7))


class Columns(torch.nn.Module):
    """A softmax over queries, as of slots that compete for their inputs."""

    def forward(self, scores, values):
        return torch.softmax(scores, dim=-2) @ values


def test_a_softmax_over_queries_is_no_attention_over_keys():
    module, calls = Columns(), []
    with Follower("slots", 4, calls.append):
        module(torch.randn(2, 4, 6, 8), torch.randn(2, 4, 8, 5))
    assert calls == []


def test_a_divided_mask_hides_keys_and_a_sharp_head_does_not():
    scores = torch.tensor([[0.0, -1250.0, 2.0], [0.0, -300.0, 1.0]])[None, None]
    calls = []

    def note(call):
        calls.append(call)
        return call.context

    with Follower("attention", 1, note):
        Scores("matmul")(scores, torch.randn(1, 1, 3, 2))
    assert calls[0].visible().tolist() == [[[True, False, True], [True, True, True]]]


def test_what_runs_inside_another_followed_module_is_recorded_once():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Scores("matmul")

        def forward(self, scores, values):
            with Follower("inner", 4, lambda call: names.append("inner") or call.context):
                result = self.inner(scores, values)
            return torch.softmax(scores, dim=-1) @ result

    names = []
    with Follower("outer", 4, lambda call: names.append("outer") or call.context):
        Outer()(torch.randn(2, 4, 8, 8), torch.randn(2, 4, 8, 5))
    assert names == ["inner", "outer"]


def test_a_model_without_attention_is_told_so():
    torch.manual_seed(0)
    config = transformers.MambaConfig(vocab_size=len(VOCAB), hidden_size=16, num_hidden_layers=1, state_size=4)
    with pytest.raises(CaptureError, match=r"Nothing was captured: while this model of type 'mamba' ran, no softmax"):
        capture(load(transformers.MambaModel(config).eval(), tokenizer=tokenizer()), text(4))


def test_products_that_are_modules_are_followed():
    model = load(built("squeezebert", embedding_size=32), tokenizer=tokenizer())
    read = dict(tokenizer()([text(6), text(9)], padding=True, return_tensors="pt"))
    trace = capture(model, read)
    with torch.no_grad():
        layer = model.network.encoder.layers[0].attention
        states = model.network.embeddings(read["input_ids"]).transpose(1, 2)
        split = [torch.unflatten(part(states), 1, (4, 8)).mT for part in (layer.query, layer.key, layer.value)]
        scores = (split[0] @ split[1].mT / 8**0.5).masked_fill(~trace.keys.real[:, None, None], -torch.inf)
    real = trace.queries.real[:, None, :, None]
    torch.testing.assert_close(trace.attention[0] * real, scores.softmax(-1) * real)
    torch.testing.assert_close(trace.values[0] * real, split[2] * real)


def test_the_share_of_a_sink_is_taken_from_the_weights():
    """GraniteSWA scales what the weights add up to; a logit of its own in the softmax is the same."""
    torch.manual_seed(0)
    scores, values, sinks = torch.randn(2, 4, 6, 6), torch.randn(2, 2, 6, 8), torch.randn(4)[:, None, None]
    expected = torch.cat([scores, sinks.expand(2, 4, 6, 1)], -1).softmax(-1)[..., :-1]
    context = expected @ values.repeat_interleave(2, 1)
    torch.testing.assert_close(_give_to_sink(scores.softmax(-1), values, context), expected)
    assert _give_to_sink(expected, values, context) is expected  # where the weights say it


def test_a_model_that_scales_by_a_sink_is_captured_with_gradients():
    model = load(built("granite_swa", intermediate_size=32, num_key_value_heads=2), tokenizer=tokenizer())
    trace = capture(model, text(6), target=lambda output: output.last_hidden_state[:, -1].sum(-1))
    assert (trace.attention[0].sum(-1) < 0.99).all()
    torch.testing.assert_close(trace.attention[0] @ trace.values[0], trace.context[0])
    assert trace.gradient[0].any()


def big_bird():
    return load(built("big_bird", num_hidden_layers=2), tokenizer=tokenizer())


def test_a_model_that_replaces_its_attention_modules_while_it_runs_is_captured():
    """BigBird reads short texts with full attention, from the first on."""
    trace = capture(big_bird(), text(5))
    assert len(trace.attention) == 2
    torch.testing.assert_close(trace.attention[0] @ trace.values[0], trace.context[0])


def test_an_edit_of_modules_that_were_replaced_says_so_and_works_the_second_time():
    model = big_bird()
    inputs = dict(tokenizer()(text(5), return_tensors="pt"))
    said = r"'big_bird' replaced its attention modules .* Enter hs\.edited again"
    with pytest.raises(CaptureError, match=said), edited(model, "zero_heads:heads=L0H0"):
        model.network(**inputs)
    plain = model.network(**inputs).last_hidden_state
    with edited(model, "zero_heads:heads=L0H0"):
        assert not torch.equal(model.network(**inputs).last_hidden_state, plain)


class Kernels(torch.nn.Module):
    """A convolution whose kernel a softmax made, as in ConvBERT."""

    def forward(self, scores, values):
        return values.mT @ torch.softmax(scores, dim=1)[..., :1]


def test_a_softmax_over_a_kernel_is_no_attention():
    calls = []
    with Follower("kernels", 4, calls.append):
        Kernels()(torch.randn(8, 9, 2), torch.randn(8, 9, 5))
    assert calls == []


@pytest.mark.parametrize("picked", [torch.tensor([2, 0]), slice(0, 2)])
def test_queries_that_a_module_picks_are_refused_and_a_range_of_them_is_not(picked):
    """Informer computes attention of the queries that stand out, in the order of topk."""
    queries, keys, values = torch.randn(3, 2, 1, 4, 5).unbind()
    context = torch.zeros(2, 1, 4, 5)
    with Follower("picks", 1, lambda call: call.context):
        product = torch.softmax(queries[:, :, picked] @ keys.mT, -1) @ values
        if isinstance(picked, slice):
            context[:, :, picked] = product
        else:
            with pytest.raises(
                CaptureError, match="picks computes attention of the queries that it picks, in an order"
            ):
                context[:, :, picked] = product
