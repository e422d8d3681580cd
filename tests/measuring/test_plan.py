"""Batches, samples and shards of a plan."""

from hypothesis import given
from hypothesis import strategies as st

from headscope.core.example import Example, sample_examples
from headscope.measuring.plan import TOKENS, make_plan

lengths = st.lists(st.integers(1, 600), min_size=1, max_size=200)


def make_examples(count):
    return [Example(str(index), "text") for index in range(count)]


@given(lengths)
def test_every_example_is_in_one_batch_and_batches_are_sorted_by_length(sizes):
    plan = make_plan(make_examples(len(sizes)), sizes)
    assert sorted(index for batch in plan.batches for index in batch) == list(range(len(sizes)))
    longest = [max(sizes[index] for index in batch) for batch in plan.batches]
    assert longest == sorted(longest, reverse=True)
    assert all(
        len(batch) == 1 or size <= TOKENS["cpu"] for batch, size in zip(plan.batches, plan.padded_sizes, strict=True)
    )


@given(lengths, st.integers(1, 10**6))
def test_a_batch_has_no_more_cells_than_allowed(sizes, cells):
    plan = make_plan(make_examples(len(sizes)), sizes, cells=cells)
    assert sorted(index for batch in plan.batches for index in batch) == list(range(len(sizes)))
    assert all(len(batch) == 1 or len(batch) * sizes[batch[0]] ** 2 <= cells for batch in plan.batches)


@given(st.integers(1, 50), st.integers(1, 60), st.integers(0, 3))
def test_a_sample_keeps_the_order_and_depends_only_on_the_seed(count, limit, seed):
    first, again = (sample_examples(make_examples(count), limit, seed) for _ in range(2))
    assert first == again
    assert len(first) == min(count, limit)
    assert [int(example.id) for example in first] == sorted(int(example.id) for example in first)


@given(st.integers(1, 40), st.integers(1, 10))
def test_every_example_is_in_one_shard(count, parts):
    examples = make_examples(count)
    ids = [example.id for part in range(parts) for example in examples[part::parts]]
    assert sorted(ids) == sorted(example.id for example in examples)
