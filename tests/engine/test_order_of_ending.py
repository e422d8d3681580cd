"""Edits and captures that end in another order, thread or context than they began in leave nothing behind."""

import asyncio
import contextvars
import gc
import threading
from contextlib import ExitStack, contextmanager
from itertools import permutations

import pytest
import torch

from headscope.engine.capture import capture, record_calls
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.recording import interface
from headscope.measuring.measure import measure
from tests.models import network, text, tokenizer

IDS = torch.tensor([[2, 7, 8, 9, 10, 3]])
EDITS = ("zero_heads:heads=L0H0", "uniform_heads:heads=L0H1", "zero_heads:heads=L1H2")
ORDERS = list(permutations(range(3)))


def fresh(kind="bert"):
    return load(network(kind), tokenizer=tokenizer())


def run(model):
    with torch.no_grad():
        return model.network(IDS).last_hidden_state


@contextmanager
def unchanged_after(model):
    """Compare bits, measurement, attention implementation and hooks before and after the block."""
    before, measured = run(model), measure(model, [text(6)], statistics=["entropy"])["entropy"]
    yield
    assert model.network.config._attn_implementation == "sdpa"
    assert torch.equal(run(model), before)
    assert measure(model, [text(6)], statistics=["entropy"])["entropy"].identical(measured)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())
    assert not interface._replaced


def with_edits(model, names):
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(edited(model, name))
        return run(model)


@pytest.mark.parametrize("order", ORDERS)
def test_edits_end_in_any_order_and_the_others_go_on(order):
    model = fresh()
    with unchanged_after(model):
        blocks = [edited(model, name) for name in EDITS]
        for block in blocks:
            block.__enter__()
        active = list(range(3))
        for ended in order:
            blocks[ended].__exit__(None, None, None)
            active.remove(ended)
            if active:
                assert torch.equal(run(model), with_edits(fresh(), [EDITS[index] for index in active]))


@pytest.mark.parametrize("order", ORDERS)
def test_captures_end_in_any_order_and_the_last_that_began_records(order):
    model = fresh()
    with unchanged_after(model):
        blocks = [record_calls(model, "self") for _ in range(3)]
        recorders = [block.__enter__() for block in blocks]
        active = list(range(3))
        for ended in order:
            blocks[ended].__exit__(None, None, None)
            active.remove(ended)
            counts = [len(recorder.calls) for recorder in recorders]
            run(model)
            added = [len(recorder.calls) - count for recorder, count in zip(recorders, counts, strict=True)]
            assert added == [2 if active and index == active[-1] else 0 for index in range(3)]


@pytest.mark.parametrize("order", ORDERS)
def test_an_edit_a_capture_and_another_edit_end_in_any_order(order):
    model = fresh()
    with unchanged_after(model):
        blocks = [edited(model, EDITS[0]), record_calls(model, "self"), edited(model, EDITS[1])]
        for block in blocks:
            block.__enter__()
        for ended in order:
            blocks[ended].__exit__(None, None, None)


def suspend(model, name):
    """Yield what the model computes within an edit."""
    with edited(model, name):
        while True:
            yield run(model)


@pytest.mark.parametrize("order", ORDERS)
def test_generators_are_closed_in_any_order(order):
    model = fresh()
    with unchanged_after(model):
        generators = [suspend(model, name) for name in EDITS]
        for generator in generators:
            next(generator)
        for ended in order:
            generators[ended].close()


@pytest.mark.parametrize("order", ORDERS)
def test_generators_that_raise_end_their_edits_in_any_order(order):
    model = fresh()
    with unchanged_after(model):
        generators = [suspend(model, name) for name in EDITS]
        for generator in generators:
            next(generator)
        for ended in order:
            with pytest.raises(ZeroDivisionError):
                generators[ended].throw(ZeroDivisionError())


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("close", [in_thread, lambda work: contextvars.copy_context().run(work)])
def test_a_generator_that_another_thread_or_context_closes_ends_its_edit_here(close):
    model = fresh()
    with unchanged_after(model), edited(model, EDITS[1]):
        generator = suspend(model, EDITS[0])
        next(generator)
        close(generator.close)
        assert torch.equal(run(model), with_edits(fresh(), EDITS[1:2]))


def test_a_capture_that_another_thread_ends_is_over_here():
    model = fresh()
    with unchanged_after(model), record_calls(model, "self") as outer:
        inner = record_calls(model, "self")
        recorder = inner.__enter__()
        in_thread(lambda: inner.__exit__(None, None, None))
        run(model)
        assert (len(outer.calls), len(recorder.calls)) == (2, 0)


def test_a_copy_of_the_context_does_not_prolong_an_edit():
    model = fresh()
    with edited(model, EDITS[0]):
        context = contextvars.copy_context()
    with unchanged_after(model), edited(model, EDITS[1]):
        assert torch.equal(context.run(run, model), run(fresh()))


def test_tasks_that_take_turns_have_their_own_edits():
    model = fresh()
    expected = {name: with_edits(fresh(), [name]) for name in EDITS}

    async def work(name, turns):
        with edited(model, name):
            for _ in range(turns):
                await asyncio.sleep(0)
                assert torch.equal(run(model), expected[name])

    async def work_all():
        await asyncio.gather(*(work(name, turns) for name, turns in zip(EDITS, (1, 3, 2), strict=True)))

    with unchanged_after(model):
        asyncio.run(work_all())


def test_a_task_that_outlives_the_edit_it_was_started_in_is_not_edited():
    model = fresh()

    async def finish_late(ended):
        await ended.wait()
        with edited(model, EDITS[1]):
            return run(model)

    async def start():
        ended = asyncio.Event()
        with edited(model, EDITS[0]):
            task = asyncio.create_task(finish_late(ended))
            await asyncio.sleep(0)
        ended.set()
        return await task

    with unchanged_after(model):
        assert torch.equal(asyncio.run(start()), with_edits(fresh(), EDITS[1:2]))


def test_an_asynchronous_generator_that_the_event_loop_closes_ends_its_edit():
    model = fresh()

    async def suspend_async():
        with edited(model, EDITS[0]):
            yield run(model)

    async def leave_open():
        await anext(suspend_async())  # asyncio.run closes it, in a task of its own

    with unchanged_after(model):
        asyncio.run(leave_open())
        gc.collect()


def test_stacks_of_edits_end_also_where_one_is_moved_out_and_after_errors():
    model = fresh()
    with unchanged_after(model):
        with ExitStack() as outer:
            with ExitStack() as inner:
                inner.enter_context(edited(model, EDITS[0]))
                later = inner.pop_all()
                outer.enter_context(edited(model, EDITS[1]))
                later.close()
            assert torch.equal(run(model), with_edits(fresh(), EDITS[1:2]))
        with pytest.raises(ZeroDivisionError), ExitStack() as stack:
            for name in EDITS:
                stack.enter_context(edited(model, name))
            raise ZeroDivisionError


def test_edits_of_models_that_bypass_the_interface_end_in_any_order_too():
    model, other = fresh("mpnet"), fresh("bert")
    before = run(model)
    with unchanged_after(other):
        blocks = [edited(model, EDITS[0]), edited(other, EDITS[1])]
        for block in blocks:
            block.__enter__()
        changed = run(model)
        for block in blocks:
            block.__exit__(None, None, None)
    assert not torch.equal(changed, before)
    with edited(model, EDITS[0]):  # is not refused as a second edit
        assert torch.equal(run(model), changed)
    assert torch.equal(run(model), before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())


def test_a_generator_may_be_collected_while_another_edit_begins(monkeypatch):
    model = fresh()
    find_configs = interface.find_configs

    def collect(modules):
        monkeypatch.undo()
        generators.clear()  # the last reference, so that it is closed here
        return find_configs(modules)

    with unchanged_after(model):
        generators = [suspend(model, EDITS[0])]
        next(generators[0])
        monkeypatch.setattr(interface, "find_configs", collect)
        with edited(model, EDITS[1]):
            assert torch.equal(run(model), with_edits(fresh(), EDITS[1:2]))


def test_training_mode_and_compiled_code_come_back_in_any_order():
    model = fresh()
    model.network.train()
    for order in ORDERS:
        blocks = [record_calls(model, "self"), edited(model, EDITS[0]), record_calls(model, "self")]
        for block in blocks:
            block.__enter__()
        for ended in order:
            blocks[ended].__exit__(None, None, None)
        assert all(module.training for module in model.network.modules())
    model.network.eval()
    assert torch.equal(capture(model, text(5)).attention[0], capture(fresh(), text(5)).attention[0])
