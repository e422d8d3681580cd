"""The plan decides the order of all sums, and nothing else does."""

from hypothesis import given
from hypothesis import strategies as st

from headscope.core.example import Example
from headscope.measuring.plan import TOKENS, plan_of, sample_examples

lengths = st.lists(st.integers(1, 600), min_size=1, max_size=200)


def made(many):
    return [Example(str(place), "text") for place in range(many)]


@given(lengths)
def test_every_example_is_in_one_batch_and_batches_are_alike_in_length(sizes):
    plan = plan_of(made(len(sizes)), sizes, data="x")
    assert sorted(place for batch in plan.batches for place in batch) == list(range(len(sizes)))
    longest = [max(sizes[place] for place in batch) for batch in plan.batches]
    assert longest == sorted(longest, reverse=True)
    assert all(len(batch) == 1 or many <= TOKENS["cpu"] for batch, many in zip(plan.batches, plan.padded, strict=True))


@given(lengths, st.integers(1, 10**6))
def test_a_batch_has_no_more_cells_than_there_is_room_for(sizes, cells):
    plan = plan_of(made(len(sizes)), sizes, data="x", cells=cells)
    assert sorted(place for batch in plan.batches for place in batch) == list(range(len(sizes)))
    assert all(len(batch) == 1 or len(batch) * sizes[batch[0]] ** 2 <= cells for batch in plan.batches)


@given(st.integers(1, 50), st.integers(1, 60), st.integers(0, 3))
def test_a_limit_keeps_the_order_and_the_same_seed_the_same_choice(many, limit, seed):
    first, again = (sample_examples(made(many), limit, seed) for _ in range(2))
    assert first == again
    assert len(first) == min(many, limit)
    assert [int(each.id) for each in first] == sorted(int(each.id) for each in first)


@given(st.integers(1, 40), st.integers(1, 10))
def test_shards_share_all_examples_and_none_twice(many, parts):
    every = made(many)
    found = [each.id for part in range(parts) for each in every[part::parts]]
    assert sorted(found) == sorted(each.id for each in every)
