"""What a layer writes with effective attention, all heads at once; the same code as on a GPU, on any device."""

import pytest
import torch

from headscope.core.edit import Heads
from headscope.core.errors import InputError
from headscope.effective import in_place
from headscope.effective import layers as effective
from headscope.effective.in_place import STEP, Effort, output_at_once
from headscope.effective.layers import effective_output
from headscope.effective.memory import Memory
from headscope.effective.recordings import PATIENCE
from headscope.effective.span import Fewer
from headscope.effective.visibility import Sight
from headscope.engine.capture import capture
from tests.effective.effective_traces import LONG, MIXED, SHORT, TROUBLED, changed_values, weights
from tests.gpu import gpu
from tests.models import text, tiny

torch.manual_seed(0)
ORDINARY = {
    "long": capture(tiny("bert"), LONG),
    "short": capture(tiny("bert"), SHORT),
    "gentle": changed_values(capture(tiny("bert"), [text(40), text(50)]), torch.randn_like),
}
EVERY = {**ORDINARY, **TROUBLED}
NEAR = {"atol": 2e-6, "rtol": 1e-4}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(effective, "_at_once", lambda attention, values: values.dtype == torch.float32)


def heads_of(trace, layer=0, memory=None, where=0):
    attention, values, sight = trace.attention[layer], trace.values[layer].clone(), Sight(trace.visible[layer])
    return Heads("self", where, attention, values, attention @ values, sight, memory or Memory())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("keys", ["visible", "padded"])
def test_the_output_is_that_of_effective_attention(name, keys):
    memory = Memory()
    for layer in range(2):
        heads = heads_of(EVERY[name], layer, memory)
        torch.testing.assert_close(effective_output(heads, keys), heads.attention @ heads.values, **NEAR)


@pytest.mark.parametrize("name", EVERY)
def test_it_is_effective_attention_that_is_put_in_place(name, monkeypatch):
    found, heads = [], heads_of(EVERY[name])
    spanned, settled = in_place._spanned, in_place._Span.settled
    monkeypatch.setattr(in_place, "_spanned", lambda *given: found.append(spanned(*given)) or found[-1])
    monkeypatch.setattr(in_place._Span, "settled", lambda *given: found.append(settled(*given)) or found[-1])
    effective_output(heads, "visible")
    right = found[-1].right
    made = heads.attention if right is None else heads.attention @ right @ right.mT
    monkeypatch.undo()
    careful = effective.effective_layer(heads.attention, heads.values, heads.sight, keys="visible", label=0)
    torch.testing.assert_close(made, weights(careful), atol=5e-6, rtol=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_what_was_enough_once_is_assumed_and_holds(name, monkeypatch):
    memory, trace = Memory(), EVERY[name]
    first = effective_output(heads_of(trace, 0, memory), "visible")
    memory.assumptions.allowed = True
    taken = []
    monkeypatch.setattr(memory.assumptions, "asks", lambda where: taken.append(where) or False)
    again = effective_output(heads_of(trace, 0, memory), "visible")
    assert taken or name == "on the cut"  # which is asked each time
    torch.testing.assert_close(again, first)
    assert not memory.assumptions.broken()


@pytest.mark.parametrize("before", ["gentle", "long", "short", "mixed lengths"])
@pytest.mark.parametrize("now", [name for name in TROUBLED if not name.startswith("mixed")])
def test_values_that_need_more_than_was_assumed_are_noticed_and_do_no_harm(before, now):
    memory = Memory()
    effective_output(heads_of(EVERY[before], 0, memory), "visible")
    memory.assumptions.allowed = True
    assumed = effective_output(heads_of(EVERY[now], 0, memory), "visible")
    assert torch.isfinite(assumed).all()
    assert memory.assumptions.broken()
    assert not memory.assumptions.broken()  # it is asked once
    memory.assumptions.allowed = False
    heads = heads_of(EVERY[now], 0, memory)
    torch.testing.assert_close(effective_output(heads, "visible"), heads.context, **NEAR)


def test_each_layer_has_its_own_needs():
    memory = Memory()
    effective_output(heads_of(EVERY["gentle"], 0, memory, where=0), "visible")
    effective_output(heads_of(EVERY["deficient"], 0, memory, where=1), "visible")
    needed = [memory.assumptions.needed(("self", layer, "visible"), None) for layer in range(2)]
    assert needed == [Effort(), Effort(long=12, double=True)]


def test_only_where_eigenvectors_are_needed_a_layer_is_asked_in_every_pass(monkeypatch):
    memory, settled = Memory(), []
    known = Fewer.settled
    monkeypatch.setattr(Fewer, "settled", lambda self: settled.append(self) or known(self))
    for time, name in enumerate(["on the cut", "on the cut", "long", "deficient"]):
        memory.assumptions.allowed = time > 0
        heads = heads_of(EVERY[name], 0, memory)
        torch.testing.assert_close(effective_output(heads, "visible"), heads.context, **NEAR)
        assert not memory.assumptions.broken()
    assert memory.assumptions.needed(("self", 0, "visible"), None).care
    assert len(settled) == 2


def test_a_smaller_batch_has_fewer_heads_than_ever_took_the_long_way():
    memory = Memory()
    effective_output(heads_of(EVERY["deficient"], 0, memory), "visible")
    memory.assumptions.allowed = True
    attention, values, visible = (part[0][:1] for part in (EVERY["deficient"].attention, EVERY["deficient"].values,
                                                           EVERY["deficient"].visible))  # fmt: skip
    heads = Heads("self", 0, attention, values, attention @ values, Sight(visible), memory)
    torch.testing.assert_close(effective_output(heads, "visible"), heads.context, **NEAR)
    assert not memory.assumptions.broken()


def test_a_layer_that_was_never_asked_is_asked_first():
    memory = Memory()
    memory.assumptions.allowed = True
    heads = heads_of(EVERY["deficient"], 0, memory)
    torch.testing.assert_close(effective_output(heads, "visible"), heads.context, **NEAR)
    assert not memory.assumptions.broken()


def test_what_a_pass_that_is_broken_off_assumed_is_forgotten():
    memory = Memory()
    effective_output(heads_of(EVERY["long"], 0, memory), "visible")
    memory.assumptions.allowed = True
    effective_output(heads_of(EVERY["deficient"], 0, memory), "visible")
    memory.assumptions.forget()
    assert not memory.assumptions.broken()


@pytest.mark.parametrize(("lost", "long"), [(0, 0), (1, 8), (8, 8), (9, 64), (64, 64), (70, 100), (100, 100)])
def test_heads_that_take_the_long_way_are_counted_in_steps(lost, long):
    assert STEP == 8
    assert Effort().more([2.0, 1.0, 1.0, 0.0], 8, lost, 100).long == long


@pytest.mark.parametrize(
    ("told", "single", "double"),
    [
        ([0.5, 8.0, 1.0, 0.0], True, True),
        ([1.0, 8.0, 1.0, 0.0], False, False),  # not proved
        ([float("nan"), 8.0, 1.0, 0.0], False, False),
        ([0.5, 33.0, 1.0, 0.0], False, True),  # not well-conditioned
        ([0.5, 8.0, 1e-39, 0.0], False, True),  # too small for single precision
        ([0.5, 8.0, 1.0, 1.0], False, False),  # the long way in vain
    ],
)
def test_what_a_layer_tells_says_whether_the_effort_was_enough(told, single, double):
    assert Effort().enough(told, 8) is single
    assert Effort(double=True).enough(told, 8) is double


@pytest.mark.parametrize("scale", [1e-30, 1e-38, 1e30])
def test_values_of_any_size_will_do(scale):
    trace = changed_values(EVERY["long"], lambda each: each * scale)
    heads = heads_of(trace)
    torch.testing.assert_close(effective_output(heads, "visible"), heads.context, atol=2e-6 * scale, rtol=1e-4)


def test_a_text_that_nobody_sees_does_no_harm():
    trace = capture(tiny("bert"), MIXED)
    attention, values, visible = (part[0] for part in (trace.attention, trace.values, trace.visible))
    none = visible.clone()
    none[0] = False
    blank = attention * none[:, None]
    written = output_at_once(blank, values, Sight(none).reach(8, padded=False), Memory(), 0)
    torch.testing.assert_close(written, blank @ values, **NEAR)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", ["short", "long", "mixed lengths"])
def test_values_that_are_not_finite_are_refused(name, bad):
    heads = heads_of(EVERY[name])
    heads.values[0, 1, 1, 2] = bad
    with pytest.raises(InputError, match="NaN or infinite"):
        effective_output(heads, "visible")


@gpu
@pytest.mark.parametrize("name", EVERY)
def test_what_is_replayed_is_what_was_recorded(name):
    trace, memory = EVERY[name], Memory()
    for time in range(2 * PATIENCE + 3):
        memory.assumptions.allowed = time > 1
        attention, values = (part[time % 2].cuda() for part in (trace.attention, trace.values))
        heads = Heads("self", time % 2, attention, values, attention @ values, Sight(trace.visible[0].cuda()), memory)
        torch.testing.assert_close(effective_output(heads, "visible"), heads.context, **NEAR)
        assert not memory.assumptions.broken()
