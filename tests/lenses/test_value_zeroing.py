"""Value zeroing: plain passes of the model with hooks, answers by hand, other sites, and models left as they were."""

import threading

import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError, NotCaptured
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.main_input import forward_parameters
from headscope.lenses import value_zeroing
from tests.models import batch, network, sites, text, tiny, tokenizer

KEEP = ("values", "blocks")

# the layer, and the projection of values in it: of one that makes queries, keys and values, the last third
PLACES = {
    ("bert", "self"): ("encoder.layer.{}", "attention.self.value"),
    ("distilbert", "self"): ("transformer.layer.{}", "attention.v_lin"),
    ("gpt2", "self"): ("h.{}", "attn.c_attn"),
    ("llama", "self"): ("layers.{}", "self_attn.v_proj"),
    ("gemma2", "self"): ("layers.{}", "self_attn.v_proj"),
    ("gpt_oss", "self"): ("layers.{}", "self_attn.v_proj"),
    ("t5", "encoder"): ("encoder.block.{}", "layer.0.SelfAttention.v"),
    ("t5", "decoder"): ("decoder.block.{}", "layer.0.SelfAttention.v"),
    ("t5", "cross"): ("decoder.block.{}", "layer.1.EncDecAttention.v"),
    ("bart", "cross"): ("decoder.layers.{}", "encoder_attn.v_proj"),
}


def plain_value_zeroing(built, tensors, layer_name, values_name, keys):
    """Value zeroing of one layer by whole passes of a network with hooks; rows are not cut to visible keys."""
    layer = built.get_submodule(layer_name)
    projection, outputs, zeroed = layer.get_submodule(values_name), [], []

    def zero(_, __, output):
        if not zeroed:
            return None
        changed = output.clone()
        start = 2 * output.shape[-1] // 3 if values_name.endswith("c_attn") else 0
        changed[:, zeroed[0], start:] = 0
        return changed

    def keep(_, __, output):
        outputs.append(output[0] if isinstance(output, tuple) else output)

    handles = [projection.register_forward_hook(zero), layer.register_forward_hook(keep)]
    try:
        with torch.no_grad():
            built(**tensors)
            for key in range(keys):
                zeroed[:] = [key]
                built(**tensors)
    finally:
        for handle in handles:
            handle.remove()
    own, *changed = (output[0].double() for output in outputs)
    distances = [1 - torch.nn.functional.cosine_similarity(each, own, dim=-1) for each in changed]
    scores = torch.stack(distances, dim=-1)
    return scores / scores.sum(-1, keepdim=True)


@pytest.mark.parametrize(("kind", "site"), PLACES)
def test_value_zeroing_equals_plain_passes_with_hooks(kind, site):
    layer_name, values_name = PLACES[kind, site]
    examples = batch(kind)
    maps = view(capture(tiny(kind), examples, site=site, keep=KEEP), "value_zeroing")
    plain = network(kind)
    for index, example in enumerate(examples):
        alone = capture(tiny(kind), [example], site=site, keep=("attention", "model_output"))
        queries, keys = alone.attention[0].shape[-2:]
        tensors = inputs_of(kind, example)
        for layer in maps.layers:
            expected = plain_value_zeroing(plain, tensors, layer_name.format(layer), values_name, keys)
            result = maps.layer(layer)[index, 0, :queries, :keys].double()
            torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-4)


def inputs_of(kind, example):
    """One example as plain transformers code would give it to the model."""
    if len(sites(kind)) == 1:
        taken = forward_parameters(tiny(kind).network)
        return {name: rows for name, rows in tokenizer()(example, return_tensors="pt").items() if name in taken}
    source, target = (tokenizer()(part, return_tensors="pt")["input_ids"] for part in example)
    start = torch.full((1, 1), tiny(kind).network.config.decoder_start_token_id)
    return {"input_ids": source, "decoder_input_ids": torch.cat([start, target[:, :-1]], dim=1)}


class Sum:
    """A layer of one head that adds what it writes to its input."""

    def __init__(self, inputs, context):
        self.inputs, self.output = inputs, inputs + context[:, 0]

    def __call__(self, contexts):
        return self.inputs.repeat(len(contexts) // len(self.inputs), 1, 1) + contexts[:, 0]


def test_one_layer_by_hand():
    attention = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])
    values = torch.tensor([[[[0.0, 1.0], [2.0, 0.0]]]])
    context = attention @ values
    inputs = torch.tensor([[[1.0, 0.0], [0.0, 0.5]]])
    block = Sum(inputs, context)  # its outputs are (1, 1) and (1, 1)
    result = value_zeroing.zero_values(block, context, attention, values, torch.ones(1, 2, 2, dtype=torch.bool))
    half = 1 - 0.5**0.5
    without_first = 1 - 1.5 / (2**0.5 * 1.25**0.5)  # (1, 1/2) beside (1, 1)
    expected = torch.tensor([[1.0, 0.0], [without_first / (without_first + half), half / (without_first + half)]])
    torch.testing.assert_close(result[0, 0].float(), expected)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral"])
def test_keys_that_a_query_cannot_see_have_exactly_no_share(kind):
    maps = view(capture(tiny(kind), text(12), keep=KEEP), "value_zeroing")
    for layer, visible in zip(maps.layers, maps.visible, strict=True):
        assert not maps.layer(layer)[~visible[:, None]].any()
        torch.testing.assert_close(maps.layer(layer).sum(-1), torch.ones(1, 1, visible.shape[1]))


def test_keys_in_chunks_give_the_same(monkeypatch):
    trace = capture(tiny("bert"), batch("bert"), keep=KEEP)
    whole = view(trace, "value_zeroing").weights
    rows, kind = [], type(trace.blocks[0])
    call = kind.__call__
    monkeypatch.setattr(kind, "__call__", lambda self, contexts: rows.append(len(contexts)) or call(self, contexts))
    monkeypatch.setattr(value_zeroing, "CELLS", 1)
    torch.testing.assert_close(view(trace, "value_zeroing").weights, whole, atol=1e-6, rtol=1e-5)
    assert set(rows) == {len(trace.examples)}  # one copy at a time


def test_value_zeroing_is_rolled_out_through_the_layers():
    trace = capture(tiny("bert"), batch("bert"), keep=KEEP)
    zeroing, rollout = view(trace, "value_zeroing"), view(trace, "rollout:inner=value_zeroing,residual=0")
    torch.testing.assert_close(rollout.layer(1), zeroing.layer(1) @ zeroing.layer(0))


def test_the_model_is_left_as_it_was():
    model = load(network("bert"), tokenizer=tokenizer())
    before = {name: vars(module).keys() for name, module in model.network.named_modules()}
    state = {name: weight.clone() for name, weight in model.network.state_dict().items()}
    trace = capture(model, batch("bert"), keep=KEEP)
    view(trace, "value_zeroing")
    with pytest.raises((RuntimeError, ValueError)):  # also after a failure
        trace.blocks[0](torch.zeros(3, 1, 1, 1))
    for name, module in model.network.named_modules():
        assert vars(module).keys() == before[name]  # no forward of its own, among others
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert all(torch.equal(weight, state[name]) for name, weight in model.network.state_dict().items())
    assert model.network.config._attn_implementation != "eager"


def test_a_network_in_training_mode_is_evaluated_and_stays_in_training_mode():
    built = network("bert", hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    model = load(built, tokenizer=tokenizer())
    expected = view(capture(model, text(5), keep=KEEP), "value_zeroing").weights
    built.train()
    trace = capture(model, text(5), keep=KEEP)
    torch.testing.assert_close(view(trace, "value_zeroing").weights, expected)
    assert all(module.training for module in built.modules())


def test_layers_run_again_in_another_thread_and_after_other_captures():
    trace = capture(tiny("t5"), batch("t5"), site="cross", keep=KEEP)
    expected = view(trace, "value_zeroing").weights
    capture(tiny("t5"), [("the cat", "a dog")], site="cross", keep=KEEP)
    results = []
    thread = threading.Thread(target=lambda: results.append(view(trace, "value_zeroing").weights))
    thread.start()
    thread.join()
    torch.testing.assert_close(results[0], expected)


def test_a_model_that_was_trained_since_the_capture_is_refused():
    model = load(network("bert"), tokenizer=tokenizer())
    trace = capture(model, batch("bert"), keep=KEEP)
    with torch.no_grad():
        model.network.encoder.layer[1].output.dense.weight.mul_(2)
    with pytest.raises(
        InputError, match=r"returns something else than in the capture: .* weights been changed since\?"
    ):
        view(trace, "value_zeroing")


def test_an_edited_model_has_no_layers_to_run_again():
    with edited(tiny("bert"), "zero_heads:heads=L0H1") as changed:
        trace = capture(changed, text(4), keep=KEEP)
    assert trace.blocks is None
    with pytest.raises(NotCaptured, match=r"cannot be run again by themselves: the model is being edited already"):
        view(trace, "value_zeroing")


def test_a_layer_that_cannot_be_run_for_copies_is_refused_with_a_reason():
    trace = capture(tiny("bloom"), text(4), keep=KEEP)
    with pytest.raises(
        NotCaptured, match=r"needs 'blocks', which this model does not have.*h\.0\.self_attention is in"
    ):
        view(trace, "value_zeroing")


def test_a_trace_of_tensors_has_no_layers():
    trace = Trace.of([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"], values=[torch.ones(1, 2, 3, 4)])
    with pytest.raises(NotCaptured, match="needs 'blocks', but this trace holds"):
        view(trace, "value_zeroing")


def test_blocks_are_kept_only_when_they_are_asked_for():
    assert capture(tiny("bert"), text(3)).blocks is None
    with pytest.raises(InputError, match=r"Cannot keep blocks\. What can be kept: attention, output, pads, values\."):
        hs.by_layer(tiny("bert"), text(3), see=lambda trace: trace, keep=("blocks",))


def test_value_zeroing_is_measured():
    data = hs.measure(tiny("bert"), batch("bert"), lens="value_zeroing", statistics=["entropy"], progress=False)
    assert data["entropy_n"].sel(lens="value_zeroing", head=0).values.tolist() == [[3, 3]]


def test_selected_layers_have_their_own_blocks():
    whole = view(capture(tiny("modernbert"), text(9), keep=KEEP), "value_zeroing")
    one = view(capture(tiny("modernbert"), text(9), layers=[2], keep=KEEP), "value_zeroing")
    torch.testing.assert_close(one.layer(2), whole.layer(2))


def test_blocks_and_gradients_are_captured_together():
    trace = capture(tiny("bert"), text(5), keep=KEEP, target=lambda output: output.last_hidden_state[:, 0, 0])
    assert trace.gradient is not None
    assert not trace.blocks[0].output.requires_grad
    torch.testing.assert_close(
        view(trace, "value_zeroing").weights, view(capture(tiny("bert"), text(5), keep=KEEP), "value_zeroing").weights
    )
