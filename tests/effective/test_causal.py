"""Rows that see different keys, each against a float64 decomposition of its own."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headscope.effective import causal as rows
from headscope.effective.visibility import analyze_mask

HEADS, VALUE = 3, 8
EPS = torch.finfo(torch.float32).eps


def oracle(attention, values, visible):
    """Effective attention and rank of every row, one after the other."""
    effective = torch.zeros(attention.shape, dtype=torch.float64)
    rank = torch.zeros(attention.shape[:2], dtype=torch.long)
    for head in range(len(attention)):
        for query, seen in enumerate(visible):
            if seen.any():
                left, sizes, _ = torch.linalg.svd(values[head, seen].double(), full_matrices=False)
                kept = left[:, sizes > sizes.max() * max(int(seen.sum()), values.shape[-1]) * EPS]
                effective[head, query, seen] = attention[head, query, seen].double() @ kept @ kept.T
                rank[head, query] = kept.shape[1]
    return effective, rank


def attention_of(visible, seed=0):
    draw = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(HEADS, *visible.shape, generator=draw)
    return torch.softmax(scores.masked_fill(~visible, -1e30), -1) * visible


def values_of(keys, seed=1, value=VALUE):
    return torch.randn(HEADS, keys, value, generator=torch.Generator().manual_seed(seed))


def causal(many):
    return torch.ones(many, many, dtype=torch.bool).tril()


def left_padded(many, pads):
    return causal(many) & (torch.arange(many) >= pads) & (torch.arange(many) >= pads)[:, None]


def right_padded(many, pads):
    real = torch.arange(many) < many - pads
    return causal(many) & real & real[:, None]


def prefix(many, size):
    return causal(many) | (torch.arange(many) < size)


def window(many, size):
    return causal(many) & ~causal(many).tril(-size)


MASKS = {
    "causal": causal(40),
    "causal, fewer keys than values": causal(6),
    "left padding": left_padded(40, 11),
    "right padding": right_padded(40, 9),
    "prefix": prefix(40, 17),
    "everything": torch.ones(40, 40, dtype=torch.bool),
    "one row": torch.ones(1, 20, dtype=torch.bool),
    "rows in another order": causal(40)[torch.randperm(40, generator=torch.Generator().manual_seed(3))],
    "a jump after as many keys as values": causal(40)[[*range(VALUE), *range(20, 40)]],
    "a jump before as many keys as values": causal(40)[[*range(VALUE - 2), *range(20, 40)]],
    "cross": torch.ones(7, 30, dtype=torch.bool).tril(20),
    "window": window(40, 12),
    "window, fewer keys than values": window(40, 5),
    "nothing is seen": torch.zeros(5, 5, dtype=torch.bool),
}
VALUES = {
    "plain": values_of,
    "repeated tokens": lambda keys: values_of(5)[:, torch.arange(keys) % 5],
    "one early repetition": lambda keys: values_of(keys)[:, torch.arange(keys) - (torch.arange(keys) == 3) * 2],
    "a late new token": lambda keys: (
        torch.where(torch.arange(keys)[:, None] < keys - 3, 0.0, 1.0) * values_of(keys)
        + values_of(1).expand(-1, keys, -1) * torch.arange(1, keys + 1)[:, None]
    ),
    "zero rows": lambda keys: values_of(keys) * (torch.arange(keys)[:, None] % 3 > 0),
    "zero columns": lambda keys: values_of(keys) * (torch.arange(VALUE) > 1),
    "condition 1e3": lambda keys: values_of(keys) * torch.logspace(0, -3, VALUE),
    "all zero": lambda keys: 0 * values_of(keys),
}


def project_rows(attention, values, visible):
    """One layer; returns maps and the rank of each row of each head."""
    rows_found = rows.project_rows([attention], values[None], visible, analyze_mask(visible))
    group = attention.shape[1] // values.shape[1]
    return rows_found.effective[0], rows_found.rank[0].repeat_interleave(group, 1)


def check(attention, values, visible):
    found, rank = project_rows(attention[None], values[None], visible[None])
    wanted, ranks = oracle(attention, values, visible)
    assert torch.equal(rank[0], ranks)
    assert (found[0].double() - wanted).abs().max() <= 1e-6
    assert not found[0].masked_fill(visible, 0).any()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("chunk", [4, 128])
def test_every_row_is_projected_within_its_own_keys(mask, kind, chunk, monkeypatch):
    monkeypatch.setattr(rows, "CHUNK", chunk)
    visible = MASKS[mask]
    check(attention_of(visible), VALUES[kind](visible.shape[1]), visible)


NESTED = ["causal", "left padding", "right padding", "prefix", "rows in another order", "cross"]


@pytest.mark.parametrize("mask", NESTED)
def test_nested_masks_are_recognised(mask):
    structure = analyze_mask(MASKS[mask][None])
    assert structure.shared is None
    in_order = MASKS[mask][:, structure.order[0]]
    assert torch.equal(in_order, torch.arange(in_order.shape[1]) < structure.counts[0][:, None])


@pytest.mark.parametrize("mask", ["everything", "one row", "nothing is seen"])
def test_masks_that_all_queries_share_are_recognised(mask):
    assert analyze_mask(MASKS[mask][None]).shared is not None


def test_a_window_is_neither_shared_nor_nested():
    structure = analyze_mask(MASKS["window"][None])
    assert structure.shared is None
    assert structure.order is None


def test_causal_rows_of_full_rank_are_never_projected_one_by_one(monkeypatch):
    monkeypatch.setattr(rows, "_project_lost", lambda *_: pytest.fail("rows of full rank were projected one by one"))
    visible = causal(200)
    check(attention_of(visible), values_of(200), visible)


@pytest.mark.parametrize("squeezed", [0.0, 2.0])
def test_rows_as_long_as_those_of_real_models_keep_their_digits(squeezed):
    visible = causal(160)
    check(attention_of(visible), values_of(160, value=64) * torch.logspace(0, -squeezed, 64), visible)


def test_examples_of_a_batch_keep_their_own_masks():
    visible = torch.stack([causal(30), left_padded(30, 8), right_padded(30, 4)])
    attention = torch.stack([attention_of(each) for each in visible])
    values = torch.stack([values_of(30, seed=place) for place in range(3)])
    found, _ = project_rows(attention, values, visible)
    for place, each in enumerate(visible):
        wanted, _ = oracle(attention[place], values[place], each)
        assert (found[place].double() - wanted).abs().max() <= 1e-6


def test_float64_is_projected_in_float64():
    visible = causal(20)
    attention, values = attention_of(visible).double(), values_of(20).double()
    found, _ = project_rows(attention[None], values[None], visible[None])
    assert found.dtype == torch.float64
    assert (found[0] @ values - attention @ values).abs().max() < 1e-12


@settings(max_examples=50, deadline=None)
@given(
    many=st.integers(1, 40),
    value=st.integers(1, 12),
    rank=st.integers(1, 12),
    pads=st.integers(0, 10),
    seed=st.integers(0, 2**16),
)
def test_any_rank_any_length_any_padding(many, value, rank, pads, seed):
    draw = torch.Generator().manual_seed(seed)
    rank = min(rank, value)
    values = torch.randn(HEADS, many, rank, generator=draw) @ torch.randn(HEADS, rank, value, generator=draw)
    visible = left_padded(many, min(pads, many - 1))
    for seen in visible:
        sizes = torch.linalg.svdvals(values[:, seen].double()) if seen.any() else torch.zeros(HEADS, 1)
        near = sizes / sizes.amax(-1, keepdim=True).clamp(min=1e-300) / (max(int(seen.sum()), value) * EPS)
        assume(not bool(((near > 0.25) & (near < 4)).any()))  # at the very cut, it may fall on either side
    check(attention_of(visible, seed), values, visible)


def test_dependent_rows_of_huge_values_are_not_proved_independent():
    values = values_of(8, seed=0)
    values[:, 5] = values[:, 2]
    visible = causal(8)
    check(attention_of(visible), 1e10 * values, visible)


@pytest.mark.parametrize("value", [2, 3, 4, 8])
def test_few_value_dimensions_near_the_rank_cut_keep_their_digits(value):
    visible, keys = causal(value + 1), value + 1
    for seed in range(40):
        draw = torch.Generator().manual_seed(seed)
        values = torch.randn(HEADS, keys, 1, generator=draw) * torch.randn(HEADS, 1, value, generator=draw)
        values = values * (1 + 4e-6 * torch.randn(HEADS, keys, value, generator=draw))
        sizes = torch.linalg.svdvals(values.double())
        if bool(((sizes / sizes[:, :1] / (keys * EPS) - 1).abs() > 0.3).all()):
            check(attention_of(visible, seed), values, visible)
