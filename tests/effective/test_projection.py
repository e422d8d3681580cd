"""The projection against a float64 decomposition, on the cases that break quicker ways."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headscope.core.errors import InputError
from headscope.effective.cholesky import _lower_inverse
from headscope.effective.projection import project, rank_tolerance

HEADS, KEYS, VALUE = 4, 96, 32
EPS = torch.finfo(torch.float32).eps


def oracle(attention, values):
    """Effective attention and rank, head by head."""
    maps, ranks = [], []
    for head, rows in zip(attention.double(), values.double(), strict=True):
        left, sizes, _ = torch.linalg.svd(rows, full_matrices=False)
        kept = sizes > sizes.max() * max(rows.shape) * EPS
        maps.append(head @ left[:, kept] @ left[:, kept].T)
        ranks.append(int(kept.sum()))
    return torch.stack(maps), torch.tensor(ranks)


def attention_of(keys, queries=None, seed=0):
    scores = torch.randn(HEADS, queries or keys, keys, generator=torch.Generator().manual_seed(seed))
    return torch.softmax(3 * scores, -1)


def plain(keys=KEYS, seed=0):
    return torch.randn(HEADS, keys, VALUE, generator=torch.Generator().manual_seed(seed))


def conditioned(power, keys=KEYS):
    """Values whose singular values fall from 1 to 10^-power, and which stay clear of the rank cut."""
    left = torch.linalg.qr(plain(keys).double()).Q
    right = torch.linalg.qr(plain(VALUE, seed=1).double()).Q
    sizes = torch.logspace(0, -power, VALUE, dtype=torch.float64)
    cut = keys * EPS
    sizes = torch.where((sizes > cut / 4) & (sizes < cut * 4), cut * 8, sizes)
    return ((left * sizes) @ right).float()


def repeated(tokens, keys=KEYS):
    places = torch.randint(0, tokens, (keys,), generator=torch.Generator().manual_seed(2))
    places[:tokens] = torch.arange(tokens)
    return plain(tokens)[:, places]


def changed(rows=slice(None), columns=slice(None), to=0.0):
    values = plain()
    values[:, rows, columns] = to
    return values


STRESS = {
    "plain": (plain(), VALUE),
    "fewer keys than values": (plain(20), 20),
    "as many keys as values": (plain(VALUE), VALUE),
    "one key": (plain(1), 1),
    "repeated tokens": (repeated(24), 24),
    "repeated tokens, few keys": (repeated(9, keys=21), 9),
    "zero rows": (changed(rows=slice(5, 80)), 21),
    "zero columns": (changed(columns=slice(4, 9)), VALUE - 5),
    "constant columns": (changed(columns=slice(4, 9), to=1.0), VALUE - 4),
    "all values zero": (0 * plain(), 0),
    "tiny values": (1e-20 * plain(), VALUE),
    "huge values": (1e15 * plain(), VALUE),
    **{f"condition 1e{power}": (conditioned(power), None) for power in (1, 2, 3, 4, 6, 8)},
}


@pytest.mark.parametrize("case", STRESS)
@pytest.mark.parametrize("known", [True, False], ids=["output known", "output unknown"])
def test_stress_cases_have_the_right_rank_and_an_error_of_at_most_1e_6(case, known):
    values, rank = STRESS[case]
    attention = attention_of(values.shape[1])
    found = project(
        attention, values, torch.ones(values.shape[:2], dtype=torch.bool), attention @ values if known else None
    )
    wanted, ranks = oracle(attention, values)
    assert torch.equal(found.rank, ranks)
    assert rank is None or set(ranks.tolist()) == {rank}
    assert ((found.left @ found.right.mT) - wanted).abs().max() <= 1e-6


def test_full_rank_with_few_keys_changes_nothing_at_all():
    attention = attention_of(20)
    found = project(attention, plain(20), torch.ones(HEADS, 20, dtype=torch.bool))
    assert torch.equal(found.left @ found.right.mT, attention)


def test_unseen_keys_take_no_part_whatever_their_values_hold():
    seen = torch.arange(KEYS) < 50
    attention = attention_of(KEYS) * seen
    values = plain()
    noisy = torch.where(seen[:, None], values, 1e3 * torch.randn_like(values))
    some = project(attention, noisy, seen.expand(HEADS, -1))
    wanted, ranks = oracle(attention[..., :50], values[:, :50])
    found = some.left @ some.right.mT
    assert (found[..., :50] - wanted).abs().max() <= 1e-6
    assert not found[..., 50:].any()
    assert torch.equal(some.rank, ranks)


def test_long_and_short_heads_may_stand_in_one_batch():
    seen = torch.arange(KEYS) < torch.tensor([[10], [KEYS], [VALUE], [VALUE + 1]])
    attention = attention_of(KEYS) * seen[:, None]
    found = project(attention, plain(), seen)
    for head, count in enumerate(seen.sum(-1).tolist()):
        wanted, _ = oracle(attention[head : head + 1, :, :count], plain()[head : head + 1, :count])
        assert ((found.left @ found.right.mT)[head, :, :count] - wanted[0]).abs().max() <= 1e-6


def test_float64_keeps_its_own_tolerance():
    values = conditioned(6).double()
    attention = attention_of(KEYS).double()
    found = project(attention, values, torch.ones(HEADS, KEYS, dtype=torch.bool))
    assert found.rank.tolist() == [VALUE] * HEADS
    assert (found.left @ (found.right.mT @ values) - attention @ values).abs().max() < 1e-12


def test_the_rank_rule_counts_visible_keys_and_never_goes_below_float32():
    count = torch.tensor([10, 200])
    assert rank_tolerance(count, 64).tolist() == pytest.approx([64 * EPS, 200 * EPS])
    assert torch.equal(rank_tolerance(count, 64, torch.bfloat16), rank_tolerance(count, 64))
    assert rank_tolerance(count, 64, torch.float64)[0] == pytest.approx(64 * 2.22e-16, rel=1e-2)


def test_values_that_are_not_finite_are_an_error_in_words():
    values = plain()
    values[0, 3, 3] = torch.nan
    for keys in (KEYS, 20):
        with pytest.raises(InputError, match="Some values of this layer are NaN or infinite.*dtype='float32'"):
            project(attention_of(keys), values[:, :keys], torch.ones(HEADS, keys, dtype=torch.bool))


@pytest.mark.parametrize("value", [33, 64, 100])
def test_a_factor_from_its_halves_is_the_same_factor(value):
    wide = torch.randn(HEADS, 200, value, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    gram = wide.mT @ wide
    whole, halves = (_lower_inverse(gram, halved=halved) for halved in (False, True))
    torch.testing.assert_close(halves[0], whole[0], atol=1e-12, rtol=1e-9)
    assert not halves[1].any()


def test_a_half_that_has_no_factor_is_noticed():
    gram = torch.eye(64, dtype=torch.float64)[None].repeat(2, 1, 1)
    gram[1, 50, 50] = -1
    assert (_lower_inverse(gram, halved=True)[1] > 0).tolist() == [False, True]


@settings(max_examples=60, deadline=None)
@given(
    keys=st.integers(1, 60),
    value=st.integers(1, 24),
    rank=st.integers(0, 24),
    seen=st.integers(1, 60),
    seed=st.integers(0, 2**16),
)
def test_any_rank_any_shape_any_padding(keys, value, rank, seen, seed):
    draw = torch.Generator().manual_seed(seed)
    rank, seen = min(rank, keys, value), min(seen, keys)
    values = (torch.randn(1, keys, rank, generator=draw) @ torch.randn(1, rank, value, generator=draw)).float()
    attention = torch.softmax(torch.randn(1, 5, keys, generator=draw), -1) * (torch.arange(keys) < seen)
    sizes = torch.linalg.svdvals(values[0, :seen].double())
    near = (sizes / sizes.max().clamp(min=1e-300)) / (max(seen, value) * EPS)
    assume(not bool(((near > 0.25) & (near < 4)).any()))  # at the very cut, a singular value may fall on either side
    found = project(attention, values, (torch.arange(keys) < seen)[None])
    wanted, ranks = oracle(attention[..., :seen], values[:, :seen])
    assert torch.equal(found.rank, ranks)
    assert ((found.left @ found.right.mT)[..., :seen] - wanted).abs().max() <= 1e-6


def test_a_weak_direction_of_one_key_keeps_its_digits_in_well_conditioned_values():
    for value, keys in ((64, 96), (128, 160)):
        large = 1.6 * value**0.5
        draw = torch.Generator().manual_seed(1)
        rotation = torch.linalg.qr(torch.randn(value, value, generator=draw, dtype=torch.float64)).Q
        values = torch.zeros(1, keys, value, dtype=torch.float64)
        values[0, 0, 0], values[0, 1, 1] = large, 1 / large
        values[0, 2:, 2:] = torch.linalg.qr(torch.randn(keys - 2, value - 2, generator=draw, dtype=torch.float64)).Q
        values = (values @ rotation.T).float()
        attention = torch.zeros(1, keys, keys)
        attention[..., 1] = 1
        found = project(attention, values, torch.ones(1, keys, dtype=torch.bool), attention @ values)
        assert ((found.left @ found.right.mT) - oracle(attention, values)[0]).abs().max() <= 1e-6


def test_a_singular_value_just_below_the_cut_is_not_proved_to_count():
    cells = [
        ["0x1.d8048cp-1", "0x1.8bac14p-2"],
        ["0x1.a4458ap-6", "0x1.604b36p-7"],
        ["0x1.0eea06p-9", "0x1.c6647cp-11"],
    ]
    values = torch.tensor([[float.fromhex(cell) for cell in row] for row in cells])[None]  # 0.99997 of the cut
    found = project(torch.full((1, 3, 3), 1 / 3), values, torch.ones(1, 3, dtype=torch.bool))
    assert found.rank.tolist() == [1]


def test_equal_rows_are_merged_so_that_they_need_no_decomposition(monkeypatch):
    values = torch.stack([repeated(tokens, keys=40)[0] for tokens in (5, 12, 24, 31)])  # each head repeats other keys
    attention, expected = attention_of(40), oracle(attention_of(40), values)
    monkeypatch.setattr(torch.linalg, "svd", lambda *_, **__: pytest.fail("decomposed"))
    part = project(attention, values, torch.ones(HEADS, 40, dtype=torch.bool))
    assert ((part.left @ part.right.mT).double() - expected[0]).abs().max() <= 1e-6
    assert torch.equal(part.rank, expected[1])


def test_equal_rows_among_dependent_ones_keep_their_digits():
    values = repeated(30, keys=60)
    values[:, 40] = values[:, 3] + values[:, 7]  # dependent, but equal to no other row
    values[:, 50] = values[:, 40]
    part = project(attention_of(60), values, torch.ones(HEADS, 60, dtype=torch.bool))
    expected, rank = oracle(attention_of(60), values)
    assert ((part.left @ part.right.mT).double() - expected).abs().max() <= 1e-6
    assert torch.equal(part.rank, rank)


@pytest.mark.parametrize("value", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("known", [False, True])
def test_moderately_conditioned_values_of_few_dimensions_keep_their_digits(value, known):
    worst = 0.0
    for seed in range(40):
        torch.manual_seed(seed)
        keys, power = int(torch.randint(value + 1, 3 * value + 3, ())), 1.8 * torch.rand(())
        left, right = (torch.linalg.qr(torch.randn(HEADS, size, value).double()).Q for size in (keys, value))
        sizes = torch.ones(value, dtype=torch.float64)
        sizes[-1] = 10**-power
        values = ((left * sizes) @ right.mT).float()
        attention = attention_of(keys, seed=seed)
        context = attention @ values if known else None
        part = project(attention, values, torch.ones(HEADS, keys, dtype=torch.bool), context)
        worst = max(worst, float(((part.left @ part.right.mT).double() - oracle(attention, values)[0]).abs().max()))
    assert worst <= 1e-6
