"""Intervals of weights against a general solver, and against answers worked out by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from headscope.core.errors import HeadscopeError, InputError
from headscope.effective import simplex
from headscope.effective.identifiability import interval

AGREED = 1e-8  # the solver's own tolerance is 1e-10, and vertices of ill-conditioned sets multiply it


def oracle(row, values, keys):
    """The least and greatest value of some weights, one linear programme each."""
    scaled = values / max(np.abs(values).max(), 1e-300)
    _, sizes, right = np.linalg.svd(np.vstack([scaled.T, np.ones(len(row))]), full_matrices=False)
    equal = right[sizes > 1e-10 * sizes[0]]  # the solver calls redundant equations infeasible
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = []
    for key in keys:
        cost = np.eye(len(row))[key]
        ends = [linprog(sign * cost, A_eq=equal, b_eq=equal @ row, options=options).fun for sign in (1, -1)]
        found.append((ends[0], -ends[1]))
    return np.array(found)


def check(row, values, keys=None):
    """Agrees with the oracle, and every witness is a row with the same output that reaches its bound."""
    found = interval(torch.from_numpy(row), torch.from_numpy(values))
    keys = np.arange(len(row)) if keys is None else keys
    both = np.stack([found.least, found.greatest], -1)
    assert np.abs(both[keys] - oracle(row, values, keys)).max() <= AGREED
    assert (found.least <= row + AGREED).all()
    assert (found.greatest >= row - AGREED).all()
    for rows, reached in ((found.least_row, found.least), (found.greatest_row, found.greatest)):
        assert rows.min() >= -1e-9
        assert np.abs(rows.sum(-1) - row.sum()).max() <= 1e-9
        assert np.abs((rows - row) @ values).max() <= 1e-8 * max(np.abs(values).max(), 1e-300)
        assert np.array_equal(rows.diagonal(), reached)
    return found


def drawn(keys, value, seed=0):
    return np.random.default_rng(seed).standard_normal((keys, value))


def soft(keys, sharp=2.0, seed=1):
    scores = np.exp(sharp * np.random.default_rng(seed).standard_normal(keys))
    return scores / scores.sum()


def sparse(keys, kept):
    row = np.zeros(keys)
    row[:kept] = 1 / kept
    return row


def repeated(keys, value, tokens):
    return drawn(tokens, value)[np.random.default_rng(2).integers(0, tokens, keys)]


def holed(keys, value):
    values = drawn(keys, value)
    values[::2] = 0
    return values


def constant(keys, value):
    values = drawn(keys, value)
    values[:, : value // 2] = 1
    return values


def corners(keys, value):
    """Corners of a cube: most vertices of the set are degenerate."""
    return ((np.arange(keys)[:, None] >> np.arange(value)) & 1).astype(float)


STRESS = {
    "plain": (soft(24), drawn(24, 6)),
    "sharp": (soft(24, sharp=12.0), drawn(24, 6)),
    "one weight": (sparse(24, 1), drawn(24, 6)),
    "few weights": (sparse(24, 3), drawn(24, 6)),
    "repeated tokens": (soft(24), repeated(24, 6, 9)),
    "repeated tokens, few weights": (sparse(24, 3), repeated(24, 6, 9)),
    "zero rows": (soft(24), holed(24, 6)),
    "constant columns": (soft(24), constant(24, 6)),
    "low rank": (soft(24), drawn(24, 2) @ drawn(2, 6, seed=5)),
    "corners of a cube": (np.full(32, 1 / 32), corners(32, 5)),
    "corners of a cube, few weights": (sparse(32, 2), corners(32, 5)),
    "nearly dependent": (soft(24), drawn(24, 6) * np.logspace(0, -5, 6)),
    "huge values": (soft(24), 1e15 * drawn(24, 6)),
    "tiny values": (soft(24), 1e-20 * drawn(24, 6)),
    "one dimension left": (soft(12), drawn(12, 10)),
    "one key": (np.ones(1), drawn(1, 4)),
    "less than 1, as with a sink": (0.3 * soft(24), drawn(24, 6)),
}


@pytest.mark.parametrize("case", STRESS)
def test_stress_cases_agree_with_the_solver(case):
    check(*STRESS[case])


@pytest.mark.parametrize("value", [32, 64])
def test_a_row_of_128_keys_agrees_with_the_solver(value):
    check(soft(128), drawn(128, value), keys=[0, 17, 127])


def test_bland_alone_gives_the_same_ends(monkeypatch):
    monkeypatch.setattr(simplex, "MAX_STALLED", -1)
    for case in ("plain", "few weights", "corners of a cube", "repeated tokens, few weights"):
        check(*STRESS[case])


def test_a_tableau_made_anew_after_every_end_gives_the_same_ends(monkeypatch):
    monkeypatch.setattr(simplex, "REFACTOR_AFTER", 1)
    for case in ("plain", "few weights", "corners of a cube", "nearly dependent"):
        check(*STRESS[case])


def test_zero_values_leave_every_weight_free():
    found = check(soft(5), np.zeros((5, 3)))
    assert found.rank == 0
    assert found.least.tolist() == [0] * 5
    assert found.greatest == pytest.approx([1] * 5)
    assert found.effective.tolist() == [0] * 5


def test_keys_with_the_same_values_trade_their_weights():
    values = np.array([[1.0, 0], [1, 0], [0, 1]])
    found = check(np.array([0.2, 0.3, 0.5]), values)
    assert found.least == pytest.approx([0, 0, 0.5])
    assert found.greatest == pytest.approx([0.5, 0.5, 0.5])
    assert found.greatest_row[0] == pytest.approx([0.5, 0, 0.5])


def test_a_point_between_two_others_may_take_from_both():
    found = check(np.array([0.25, 0.5, 0.25]), np.array([[-1.0], [0], [1]]))
    assert found.least == pytest.approx([0, 0, 0])
    assert found.greatest == pytest.approx([0.5, 1, 0.5])


def test_independent_values_determine_the_row():
    row = soft(6)
    found = check(row, drawn(6, 8))
    assert found.least == pytest.approx(row, abs=1e-12)
    assert found.greatest == pytest.approx(row, abs=1e-12)
    assert found.effective == pytest.approx(row, abs=1e-12)


def test_the_sum_determines_what_the_values_leave_open():
    row = soft(4)
    found = check(row, drawn(4, 3))  # rank 3, and the sum is a fourth equation
    assert found.rank == 3
    assert found.greatest == pytest.approx(row, abs=1e-9)


def test_a_row_without_weight_stays_without():
    found = interval(torch.zeros(3), torch.ones(3, 2))
    assert not found.greatest.any()


def test_float32_values_have_the_rank_of_float32():
    values = drawn(20, 2) @ drawn(2, 6, seed=5)
    assert interval(torch.from_numpy(soft(20)), torch.from_numpy(values).float()).rank == 2


def test_values_that_are_not_finite_are_an_error_in_words():
    with pytest.raises(InputError, match="NaN or infinite, so no interval is defined.*dtype='float32'"):
        interval(torch.ones(2) / 2, torch.full((2, 2), torch.nan))


def test_what_cannot_be_proved_is_never_returned(monkeypatch):
    monkeypatch.setattr(simplex, "OPTIMALITY_TOLERANCE", 10.0)  # every walk ends where it starts
    with pytest.raises(HeadscopeError, match="The interval of key .* could not be proved: it is uncertain by"):
        interval(torch.from_numpy(soft(12)), torch.from_numpy(drawn(12, 3)))


def test_a_walk_without_end_is_said(monkeypatch):
    monkeypatch.setattr(simplex, "MAX_PIVOTS", 2)
    with pytest.raises(HeadscopeError, match="are not found after 2 pivots"):
        interval(torch.from_numpy(soft(12)), torch.from_numpy(drawn(12, 3)))


@settings(max_examples=60, deadline=None)
@given(
    keys=st.integers(1, 16),
    value=st.integers(1, 8),
    rank=st.integers(0, 8),
    tokens=st.integers(1, 16),
    kept=st.integers(1, 16),
    whole=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_any_rank_any_repetition_any_sparsity(keys, value, rank, tokens, kept, whole, seed):
    random = np.random.default_rng(seed)
    rank = min(rank, value)
    if whole:  # small whole numbers: many exact ties
        values = random.integers(-1, 2, (tokens, rank)) @ random.integers(-1, 2, (rank, value))
    else:
        values = random.standard_normal((tokens, rank)) @ random.standard_normal((rank, value))
    row = soft(keys, seed=seed) * (random.permutation(keys) < kept)
    check(row / row.sum(), values[random.integers(0, tokens, keys)].astype(float))
