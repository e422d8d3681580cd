"""Windows, batches, samples and shards of a plan."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.core.errors import InputError
from headscope.core.example import Example, ExampleStream, sample_examples, sample_stream
from headscope.measuring.plan import TOKENS, BatchPlan, plan_batches

lengths = st.lists(st.integers(1, 600), min_size=1, max_size=200)


def make_examples(count):
    return [Example(str(index), "text") for index in range(count)]


def make_stream(count):
    return ExampleStream(lambda: iter(make_examples(count)), range(count))


def split(sizes, examples, first):
    """Split a window, of texts whose number of tokens is known by their position."""
    return plan_batches(examples, [sizes[int(example.id)] for example in examples], first=first)


@given(lengths)
def test_every_example_is_in_one_batch_and_batches_are_sorted_by_length(sizes):
    batches = plan_batches(make_examples(len(sizes)), sizes)
    assert sorted(index for batch in batches for index in batch.positions) == list(range(len(sizes)))
    assert all([int(example.id) for example in batch.examples] == list(batch.positions) for batch in batches)
    longest = [max(sizes[index] for index in batch.positions) for batch in batches]
    assert longest == sorted(longest, reverse=True) == [batch.length for batch in batches]
    assert all(len(batch) == 1 or batch.padded_size <= TOKENS["cpu"] for batch in batches)
    assert sum(batch.work for batch in batches) == pytest.approx(len(sizes))


@given(lengths, st.integers(1, 10**6))
def test_a_batch_has_no_more_cells_than_allowed(sizes, cells):
    batches = plan_batches(make_examples(len(sizes)), sizes, cells=cells)
    assert sorted(index for batch in batches for index in batch.positions) == list(range(len(sizes)))
    assert all(len(batch) == 1 or len(batch) * batch.length**2 <= cells for batch in batches)


@given(lengths, st.integers(1, 210))
def test_a_stream_has_the_batches_of_a_list(sizes, window):
    plans = [BatchPlan(source(len(sizes)), partial(split, sizes), window) for source in (make_examples, make_stream)]
    first, second = (list(plan.batches()) for plan in plans)
    assert first == second
    assert plans[0].fingerprint == plans[1].fingerprint
    assert all(len({position // window for position in batch.positions}) == 1 for batch in first)
    assert sorted(position for batch in first for position in batch.positions) == list(range(len(sizes)))


@given(lengths, st.integers(1, 210), st.data())
def test_batches_from_any_example_on_are_the_rest_of_the_plan(sizes, window, data):
    plan = BatchPlan(make_stream(len(sizes)), partial(split, sizes), window)
    start = data.draw(st.integers(0, len(sizes)))
    order = [position for batch in plan.batches() for position in batch.positions]
    rest = list(plan.batches(start))
    assert [position for batch in rest for position in batch.positions] == order[start:]
    whole = {batch.positions for batch in plan.batches()}
    assert all(batch.positions in whole for batch in rest[1:])


def test_no_more_than_a_window_is_read_ahead():
    read = []

    def examples():
        for example in make_examples(50):
            read.append(example)
            yield example

    plan = BatchPlan(ExampleStream(examples, range(50)), partial(split, [10] * 50), 8)
    batches = plan.batches()
    next(batches)
    assert len(read) == 16  # the first window, and the first window again, which is planned before
    assert sum(len(batch) for batch in batches) == 42


def test_a_window_has_an_example():
    with pytest.raises(InputError, match="window must be at least 1, but got 0"):
        BatchPlan([], partial(split, []), 0)


@given(st.integers(1, 50), st.integers(1, 60), st.integers(0, 3))
def test_a_sample_keeps_the_order_and_depends_only_on_the_seed(count, limit, seed):
    first, again = (sample_examples(make_examples(count), limit, seed) for _ in range(2))
    assert first == again == list(sample_stream(make_stream(count), limit, seed))
    assert len(first) == min(count, limit)
    assert [int(example.id) for example in first] == sorted(int(example.id) for example in first)


@given(st.integers(1, 40), st.integers(1, 10), st.integers(1, 40))
def test_every_example_is_in_one_shard(count, parts, limit):
    examples, stream = sample_examples(make_examples(count), limit, 0), sample_stream(make_stream(count), limit, 0)
    shards = [examples[part::parts] for part in range(parts)]
    assert shards == [list(stream[part::parts]) for part in range(parts)]
    assert [len(stream[part::parts]) for part in range(parts)] == list(map(len, shards))
    assert sorted(example.id for shard in shards for example in shard) == sorted(example.id for example in examples)
