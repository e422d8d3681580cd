"""Taking part in the calls of blocks: forwards are replaced for a while."""

import threading
from itertools import permutations

import pytest
import torch

from headscope.engine.load import load
from headscope.engine.resuming.resume import find_blocks, record_blocks, resume_at
from tests.models import network, tokenizer

IDS = torch.tensor([[2, 7, 8, 9, 10, 3]])


def fresh():
    return load(network("bert"), tokenizer=tokenizer())


def run(model):
    with torch.no_grad():
        return model.network(IDS).last_hidden_state


def in_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_blocks_get_their_forwards_back_in_any_order(order):
    model = fresh()
    before, blocks = run(model), find_blocks(model)
    watches = [record_blocks(blocks) for _ in range(3)]
    recorded = [watch.__enter__() for watch in watches]
    active = set(range(3))
    for ended in order:
        counts = [len(single.outputs) for single in recorded]
        run(model)
        added = [len(single.outputs) - count for single, count in zip(recorded, counts, strict=True)]
        assert added == [2 if index in active else 0 for index in range(3)]
        watches[ended].__exit__(None, None, None)
        active.remove(ended)
    assert not any("forward" in module.__dict__ for module in model.network.modules())
    assert torch.equal(run(model), before)


def test_a_thread_that_ends_first_leaves_another_one_its_own_pass():
    model = fresh()
    before, blocks = run(model), find_blocks(model)
    with record_blocks(blocks) as recorded:
        run(model)
    mine = resume_at(blocks, recorded, 2, 1)
    mine.__enter__()
    other = record_blocks(blocks)
    other_recorded = in_thread(other.__enter__)
    mine.__exit__(None, None, None)
    assert torch.equal(run(model), before)
    assert not other_recorded.outputs  # that was not its thread
    in_thread(lambda: other.__exit__(None, None, None))
    assert not any("forward" in module.__dict__ for module in model.network.modules())
    assert torch.equal(run(model), before)


def test_a_forward_of_the_users_own_comes_back():
    model = fresh()
    layer = model.network.encoder.layer[0]
    own = layer.forward
    layer.forward = own
    watches = [record_blocks(find_blocks(model)) for _ in range(2)]
    for watch in watches:
        watch.__enter__()
    for watch in watches:
        watch.__exit__(None, None, None)
    assert layer.__dict__["forward"] is own
