"""Tokens of a captured batch: computed on first access, and unaffected by what happens after the capture."""

import pickle

import pytest
import torch

from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.gpu import gpu
from tests.models import network, text, tiny, tokenizer

TEXTS = [text(5), text(9)]


def encoded(device="cpu"):
    return dict(tokenizer()(TEXTS, padding=True, return_tensors="pt").to(device))


def fail(*_, **__):
    raise AssertionError("a token was decoded")


@pytest.mark.parametrize("kind", ["bert", "t5", "gpt2"])
@pytest.mark.parametrize("inputs", [TEXTS, encoded()], ids=["texts", "ids"])
def test_a_capture_and_a_view_decode_no_token(kind, inputs, monkeypatch):
    model = tiny(kind)
    expected = capture(model, inputs)
    with monkeypatch.context() as patched:
        for name in ("convert_ids_to_tokens", "decode", "batch_decode"):
            patched.setattr(type(model.tokenizer), name, fail)
        trace = capture(model, inputs)
        maps = view(trace, "effective")
        maps.layer(0)
        with pytest.raises(AssertionError, match="a token was decoded"):
            _ = maps.keys.text
    assert maps.keys.text == expected.keys.text
    assert maps.examples == expected.examples
    for name in ("real", "special", "segment", "word", "role"):
        assert torch.equal(getattr(maps.keys, name), getattr(expected.keys, name))


def test_later_changes_of_the_input_tensors_do_not_change_the_tokens():
    model, inputs = tiny("bert"), encoded()
    expected = capture(model, encoded()).keys
    trace = capture(model, inputs)
    for tensor in inputs.values():
        tensor.fill_(1)
    assert trace.keys.text == expected.text
    assert torch.equal(trace.keys.real, expected.real)
    assert torch.equal(trace.keys.role, expected.role)
    assert torch.equal(trace.keys.segment, expected.segment)


def test_a_trace_can_be_pickled_before_its_tokens_were_asked_for():
    trace = capture(tiny("bert"), encoded())
    copied = pickle.loads(pickle.dumps(trace))
    assert copied.keys.text == trace.keys.text
    assert copied.examples == trace.examples
    assert [example.text for example in copied.examples] == [" ".join(row) for row in trace.keys.text]


@gpu
@pytest.mark.filterwarnings("ignore:.*prototype feature")  # what torch calls the mode that forbids synchronisation
def test_a_capture_of_tensors_on_a_gpu_does_not_synchronise():
    model = load(network("bert").cuda(), tokenizer=tokenizer())
    inputs, expected = encoded("cuda"), capture(tiny("bert"), encoded())
    capture(model, inputs)  # the first call allocates
    allow, forbid = (lambda *_, mode=mode: torch.cuda.set_sync_debug_mode(mode) for mode in ("default", "error"))
    hooks = [model.network.register_forward_pre_hook(allow), model.network.register_forward_hook(forbid)]
    try:
        forbid()  # outside the forward pass: inside, transformers synchronises by itself
        trace = capture(model, inputs)
    finally:
        allow()
        for hook in hooks:
            hook.remove()
    for tensor in inputs.values():
        tensor.fill_(1)
    assert not trace.keys.real.is_cuda
    assert trace.keys.text == expected.keys.text
    assert torch.equal(trace.keys.real, expected.keys.real)
