"""Traces from calls that nnsight saved: those of a capture."""

import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from tests.models import batch, tiny

CAUSAL, BOTH = SimpleNamespace(is_causal=True), SimpleNamespace(is_causal=False)
KINDS = ("llama", "gemma2", "gpt_oss", "bert")
ABC = ["a", "b", "c"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with the calls of each kind."""
    if find_spec("nnsight") is None:
        pytest.skip("pip install headscope[nnsight]")
    path = tmp_path_factory.mktemp("calls")
    subprocess.run([sys.executable, "-m", "tests.core.nnsight_calls", str(path)], check=True)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_calls_saved_by_nnsight_give_the_captured_trace(kind, folder):
    calls = [
        ((args, options), output) for args, options, output in torch.load(folder / f"{kind}.pt", weights_only=False)
    ]
    captured = capture(tiny(kind), batch(kind))
    trace = Trace.from_nnsight(calls, captured.keys.text, output=list(captured.output))
    for name in ("attention", "values", "context"):
        for mine, theirs in zip(getattr(trace, name), getattr(captured, name), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
    assert all(torch.equal(*pair) for pair in zip(trace.visible, captured.visible, strict=True))
    assert trace.group == captured.group
    for lens in ("effective", "norm"):
        torch.testing.assert_close(view(trace, lens).weights, view(captured, lens).weights, atol=1e-4, rtol=1e-4)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def made(mask=None, module=CAUSAL, added=0.0, **options):
    """A call of two heads over three tokens, with the context that plain formulas give."""
    query, key, value = (random(1, 2, 3, 4, seed=seed) for seed in range(3))
    seen = options.pop("seen")
    scores = (query @ key.mT * 0.5 + added).masked_fill(~torch.tensor(seen, dtype=torch.bool), -torch.inf)
    context = (scores.softmax(-1) @ value).transpose(1, 2)
    return ((module, query, key, value, mask), {"scaling": 0.5, "dropout": 0.0, **options}), (context, None)


ALL, LOWER, TWO = [[1, 1, 1]] * 3, [[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
HIDDEN = torch.finfo(torch.float32).min
BIAS = random(1, 2, 3, 3, seed=9)


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({}, LOWER),
        ({"module": BOTH}, ALL),
        ({"is_causal": False}, ALL),
        ({"sliding_window": 2}, TWO),
        ({"mask": torch.tensor(TWO).bool()[None, None]}, TWO),
        ({"mask": torch.where(torch.tensor(LOWER).bool(), 0.0, HIDDEN)[None, None]}, LOWER),
        ({"mask": BIAS.masked_fill(~torch.tensor(LOWER).bool(), HIDDEN), "added": BIAS}, LOWER),
    ],
)
def test_a_call_says_which_keys_are_seen(options, seen):
    trace = Trace.from_nnsight([made(seen=seen, **options)], ABC)
    assert trace.visible[0][0].int().tolist() == seen
    torch.testing.assert_close(trace.attention[0] @ trace.values[0], trace.context[0])


def test_a_mask_of_tokens_hides_padding_as_flash_attention_takes_it():
    call = made(seen=[[1, 1, 0]] * 3, module=BOTH, mask=torch.tensor([[1, 1, 0]]))
    trace = Trace.from_nnsight([call], ["a", "b"])
    assert trace.keys.real.tolist() == [[True, True, False]]
    assert not trace.attention[0][:, :, :, 2].any()


def test_arguments_may_have_names():
    (args, options), output = made(seen=LOWER)
    names = dict(zip(("query", "key", "value", "attention_mask"), args[1:], strict=True))
    trace = Trace.from_nnsight([((args[:1], {**options, **names}), output)], ABC)
    assert torch.equal(trace.attention[0], Trace.from_nnsight([made(seen=LOWER)], ABC).attention[0])


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ([], r"calls must be a list with \(inputs, output\) for each layer, but got \[\]"),
        (
            [(torch.ones(1), torch.ones(1))],
            r"calls\[0\] is not \(inputs, output\) of an attention function.*line\.inputs",
        ),
        ([made(seen=LOWER, scaling=None)], r"call of layer 0 names no scaling, and it is not guessed.*from_qkv"),
        ([made(seen=LOWER, scaling=0.6)], r"A·V of layer 0 is not the context.*Computed with scale 0\.6"),
        ([made(seen=LOWER, mask=torch.stack([torch.eye(3), torch.ones(3, 3)]).bool()[None])], r"layer 0 heads differ"),
    ],
)
def test_what_does_not_fit_is_an_error(calls, sentence):
    with pytest.raises(InputError, match=sentence):
        Trace.from_nnsight(calls, ABC)
