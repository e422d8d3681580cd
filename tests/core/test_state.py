"""What has been seen adds up, and says so where it cannot."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.core.errors import InputError
from headscope.core.state import Moments, Rows, State, Total

numbers = st.floats(-1e6, 1e6) | st.just(np.nan)


@given(arrays(np.float64, (6, 2), elements=numbers), st.integers(0, 6))
def test_moments_of_parts_are_the_moments_of_the_whole(table, cut):
    whole, added = Moments.from_values(table), Moments.from_values(table[:cut]) + Moments.from_values(table[cut:])
    np.testing.assert_array_equal(added.n, whole.n)
    np.testing.assert_allclose(added.mean, whole.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(added.square, whole.square, rtol=1e-9, atol=1e-3)  # squares reach 1e12


def test_moments_equal_those_of_numpy():
    table = np.array([[1.0, np.nan], [2.0, 5.0], [6.0, np.nan]])
    result = Moments.from_values(table)
    assert result.n.tolist() == [3, 1]
    assert result.mean.tolist() == [3.0, 5.0]
    np.testing.assert_allclose(result.square, np.nanvar(table, 0) * result.n)


def test_a_small_variance_far_from_0_is_accurate():
    table = 1e9 + np.arange(6.0)[:, None]
    added = Moments.from_values(table[:2]) + Moments.from_values(table[2:])
    np.testing.assert_allclose(added.square, np.var(table) * 6)


def test_totals_add():
    assert (Total(np.array([1, 2])) + Total(np.array([3, 4]))).sum.tolist() == [4, 6]


def test_rows_are_sorted_by_id_whatever_the_order_of_adding():
    first, second = (
        Rows.from_values(np.array(["b", "d"]), np.array([2.0, 4.0])),
        Rows.from_values(np.array(["a"]), np.array([1.0])),
    )
    for result in (first + second, second + first):
        assert result.ids.tolist() == ["a", "b", "d"]
        assert result.values.tolist() == [1.0, 2.0, 4.0]


def test_a_duplicate_id_is_an_error():
    rows = Rows.from_values(np.array(["a", "b"]), np.zeros(2))
    with pytest.raises(InputError, match="the id 'b' comes twice. Measure every example once"):
        rows + Rows.from_values(np.array(["b"]), np.zeros(1))
    with pytest.raises(InputError, match="the id 'c' comes twice"):
        Rows.from_values(np.array(["c", "c"]), np.zeros(2))


def state(spec="entropy", labels=None, **leaves):
    return State(spec, leaves or {"entropy": Total(np.ones(2))}, {"layer": [0, 1]} if labels is None else labels)


def test_states_of_different_parameters_do_not_add():
    with pytest.raises(InputError, match="one is of 'entropy', the other of 'entropy:smoothing=0.1'. Measure both"):
        state() + state("entropy:smoothing=0.1")


def test_states_with_different_axes_or_leaves_do_not_add():
    with pytest.raises(InputError, match="Cannot add these states of 'entropy': their axes differ."):
        state() + state(labels={"layer": [0, 2]})
    with pytest.raises(InputError, match="their axes differ"):
        state() + state(entropy=Moments.from_values(np.ones((1, 2))))


def test_a_state_with_every_kind_of_leaf_survives_a_file():
    saved = state(
        moments=Moments.from_values(np.arange(6.0).reshape(3, 2)),
        total=Total(np.array([1.0, 2.0])),
        rows=Rows.from_values(np.array(["zwei", "für"]), np.ones((2, 2))),
    )
    file = io.BytesIO()
    np.savez(file, **saved.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        back = State.from_arrays(dict(arrays))
    assert (back.spec, back.labels) == (saved.spec, saved.labels)
    for name, leaf in saved.leaves.items():
        assert type(back.leaves[name]) is type(leaf)
        for part, expected in vars(leaf).items():
            np.testing.assert_array_equal(getattr(back.leaves[name], part), expected)
