"""The examples of largest and smallest value add up, in any order and split, like a list that is sorted at the end."""

import io
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.core.state import Extremes, State

COUNT = 7
SAMPLE = np.array([1, 2, 5])
numbers = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 0.25, 3.0, np.inf, np.nan])  # few, so that many are equal
tables = arrays(np.float64, (COUNT, 2, 3), elements=numbers)
orders = st.permutations(range(COUNT))
sizes = st.integers(1, COUNT + 2)


def extremes(table, positions, size):
    """The state of a batch with some of the examples."""
    at = np.array(positions, np.int64)
    return Extremes.from_values(at, table[at], size, SAMPLE)


def sort_all(table, cell, size):
    """Ranks by plain sorting: the largest and the smallest values of a cell with their positions."""
    known = [(value, at) for at, value in enumerate(table[(slice(None), *cell)].tolist()) if value == value]
    largest = sorted(known, key=lambda pair: (-pair[0], pair[1]))[:size]
    return largest, sorted(known)[:size]


def ranks(values, at):
    return [(value, place) for value, place in zip(values.tolist(), at.tolist(), strict=True) if place >= 0]


@given(tables, orders, st.sets(st.integers(1, COUNT - 1)), sizes)
def test_any_split_and_order_gives_what_sorting_all_examples_gives(table, order, cuts, size):
    parts = [order[start:stop] for start, stop in pairwise([0, *sorted(cuts), COUNT])]
    whole = extremes(table, parts[0], size)
    for part in parts[1:]:
        whole = whole + extremes(table, part, size)
    for cell in np.ndindex(2, 3):
        index = (slice(None), *cell)
        largest, smallest = sort_all(table, cell, size)
        assert ranks(whole.largest[index], whole.largest_at[index]) == largest
        assert ranks(whole.smallest[index], whole.smallest_at[index]) == smallest
        np.testing.assert_array_equal(whole.sample[index], table[SAMPLE][index])
    assert whole.largest.shape == whole.smallest_at.shape == (size, 2, 3)
    np.testing.assert_array_equal(np.isnan(whole.largest), whole.largest_at == -1)
    np.testing.assert_array_equal(np.isnan(whole.smallest), whole.smallest_at == -1)


@given(tables, sizes)
def test_adding_is_associative_and_commutative(table, size):
    parts = [extremes(table, positions, size) for positions in ([0, 6, 3], [1], [5, 2, 4])]
    expected = (parts[0] + parts[1]) + parts[2]
    for a, b, c in permutations(parts):
        for found in ((a + b) + c, a + (b + c)):
            for name, array in vars(expected).items():
                np.testing.assert_array_equal(getattr(found, name), array)


def test_of_equal_values_the_earlier_example_comes_first():
    table = np.zeros((COUNT, 1))
    whole = extremes(table, [6, 4, 5], 2) + extremes(table, [3, 0], 2)
    assert whole.largest_at[:, 0].tolist() == whole.smallest_at[:, 0].tolist() == [0, 3]


def test_where_all_values_are_nan_there_is_no_example():
    whole = extremes(np.full((COUNT, 1), np.nan), range(COUNT), 3)
    assert np.isnan(whole.largest).all()
    assert (whole.largest_at == -1).all()
    assert np.isnan(whole.sample).all()


def test_its_size_does_not_grow_with_the_examples():
    one, many = (extremes(np.random.default_rng(0).random((COUNT, 2)), range(count), 2) for count in (1, COUNT))
    assert [array.shape for array in vars(one).values()] == [array.shape for array in vars(one + many).values()]


def test_it_survives_a_file_and_a_damaged_one_is_refused():
    saved = State("activity", {"examples": extremes(np.arange(14.0).reshape(COUNT, 2), range(COUNT), 3)})
    file = io.BytesIO()
    np.savez(file, **saved.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        stored = dict(stored)
    for name, array in vars(State.from_arrays(stored).leaves["examples"]).items():
        np.testing.assert_array_equal(array, getattr(saved.leaves["examples"], name))
    for name, broken in (("largest_at", np.zeros((2, 2), np.int64)), ("sample", np.zeros((3, 5)))):
        with pytest.raises(ValueError, match="do not fit together"):
            State.from_arrays({**stored, f"examples/{name}": broken})
