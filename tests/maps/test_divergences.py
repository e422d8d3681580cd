import numpy as np
import pytest
import torch
from scipy.special import rel_entr

from headscope.maps import divergences as module
from headscope.maps.compiled_divergences import compare_heads
from headscope.maps.divergences import divergences


def make_shares(batch=2, heads=5, queries=40, keys=37, *, seed=0, dtype=torch.float32):
    """Return rows of some zeros; some rows of some heads have no weight at all."""
    random = torch.Generator().manual_seed(seed)
    weights = torch.rand(batch, heads, queries, keys, generator=random, dtype=torch.float64) ** 8
    weights[weights < 1e-3] = 0
    weights[0, 1, 3] = weights[0, 2, [3, 7]] = weights[1, :, -1] = 0
    return (weights / weights.sum(-1, keepdim=True)).to(dtype)


def literal(shares):
    """Return the sum over the rows that both heads have, in float64."""
    shares = shares.double().numpy()
    table = np.zeros((len(shares), shares.shape[1], shares.shape[1]))
    for example, first, second in np.ndindex(*table.shape):
        for p, q in zip(shares[example, first], shares[example, second], strict=True):
            if not np.isnan(p[0] + q[0]):
                table[example, first, second] += (rel_entr(p, (p + q) / 2) + rel_entr(q, (p + q) / 2)).sum() / 2
    return table


@pytest.fixture
def uncompiled(monkeypatch):
    monkeypatch.setattr(module, "_has_compiler", lambda: False)


def test_compiled_divergences_are_those_of_the_definition():
    shares = make_shares()
    assert np.allclose(compare_heads(shares), literal(shares), atol=2e-5)  # float32, sums up to 28


def test_without_a_compiler_they_are_the_same(uncompiled):
    shares = make_shares()
    assert np.allclose(divergences(shares), literal(shares), atol=2e-5)  # float32, sums up to 28


def test_float64_is_not_rounded():
    shares = make_shares(dtype=torch.float64)
    assert np.allclose(divergences(shares), literal(shares), atol=1e-12)


@pytest.mark.parametrize("cells", [50, 500, 10_000])
def test_few_rows_at_a_time_give_the_same(uncompiled, monkeypatch, cells):
    shares = make_shares()
    whole = divergences(shares)
    monkeypatch.setitem(module.CELLS, "cpu", cells)
    torch.testing.assert_close(divergences(shares), whole)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_no_bit(threads):
    shares, before = make_shares(), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = compare_heads(shares)
        torch.set_num_threads(threads)
        assert torch.equal(compare_heads(shares), alone)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("compiler", [True, False])
def test_the_mean_is_over_the_rows_that_both_have(monkeypatch, compiler):
    monkeypatch.setattr(module, "_has_compiler", lambda: compiler)
    total, mean = (divergences(make_shares(), mean=mean) for mean in (False, True))
    ratio = total[0, 0, 1:] / mean[0, 0, 1:]
    assert torch.allclose(ratio, torch.tensor([39.0, 38, 40, 40], dtype=torch.float64))
    assert torch.allclose(total[1, 0, 1] / mean[1, 0, 1], torch.tensor(39.0, dtype=torch.float64))


@pytest.mark.parametrize("compiler", [True, False])
def test_heads_without_a_row_in_common_have_no_divergence(monkeypatch, compiler):
    monkeypatch.setattr(module, "_has_compiler", lambda: compiler)
    shares = make_shares()[:1, :3, 10:14]
    shares[0, 0, :2] = shares[0, 1, 2:] = torch.nan
    for mean in (False, True):
        table = divergences(shares, mean=mean)[0]
        assert table.isnan().tolist() == [[False, True, False], [True, False, False], [False, False, False]]
        assert table.diagonal().tolist() == [0, 0, 0]


def test_the_logarithm_of_compiled_code_is_exact_to_rounding_at_any_size():
    sizes = torch.logspace(-30, 0, 4001)[None, None, None]  # not a distribution: each m·log m alone
    both = torch.cat([sizes, torch.zeros_like(sizes)], dim=1)
    divergence = [float(compare_heads(part)[0, 0, 1]) for part in both.split(1, dim=-1)[::100]]
    expected = np.log(2) / 2 * sizes.double().flatten()[::100].numpy()  # of p with 0: p/2·log 2
    assert np.allclose(divergence, expected, rtol=2e-5, atol=0)  # log(1e-30) = -69 takes two digits
