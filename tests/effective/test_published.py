"""The basis of the published code, against its decomposition in float32 and one in float64."""

import pytest
import torch

from headscope.core.errors import InputError
from headscope.effective.published import PAPER_CUTOFF, find_published_basis

KEYS, VALUE = 96, 32


def make_values(*powers, keys=KEYS, seed=0):
    """One head for each power, whose singular values fall from 30 to 30 · 10^-power; None: half of them are zero."""
    draw = torch.Generator().manual_seed(seed)
    heads = []
    for power in powers:
        left, right = (
            torch.linalg.qr(torch.randn(size, VALUE, generator=draw).double()).Q for size in (max(keys, VALUE), VALUE)
        )
        sizes = 30 * torch.logspace(0, -(power or 2), VALUE, dtype=torch.float64)
        sizes = sizes if power is not None else sizes * (torch.arange(VALUE) < VALUE // 2)
        heads.append((left * sizes) @ right)
    return torch.stack(heads)[:, :keys].float()


def project(values):
    """Return the projection on all left singular vectors of every head."""
    left = torch.linalg.svd(values.double(), full_matrices=False)[0]
    return left @ left.mT


def as_published(values):
    """Return the projection on the vectors that the published code keeps."""
    left, sizes, _ = torch.linalg.svd(values, full_matrices=False)
    kept = left[..., : int((sizes > PAPER_CUTOFF).sum(-1).max())].double()
    return kept @ kept.mT


@pytest.mark.parametrize("powers", [(1, 2), (1, 3, 6, None), (None, 1), (7, None)])
@pytest.mark.parametrize("keys", [VALUE, VALUE + 1, KEYS])
def test_every_head_keeps_what_the_published_code_keeps(powers, keys):
    values = make_values(*powers, keys=keys)
    basis = find_published_basis(values)
    found = basis.right.double() @ basis.right.double().mT
    assert (found - as_published(values)).abs().max() <= 1e-3  # a decomposition in float32
    for head, power in enumerate(powers):
        if power is not None and power <= 3:
            assert (found[head] - project(values)[head]).abs().max() <= 1e-6


def test_only_heads_whose_rank_is_not_proved_are_decomposed(monkeypatch):
    values, decomposed, svd = make_values(1, 6, 2, None), [], torch.linalg.svd
    monkeypatch.setattr(torch.linalg, "svd", lambda some, **options: decomposed.append(some) or svd(some, **options))
    find_published_basis(values)
    (some,) = decomposed
    assert torch.equal(some, values[[1, 3]])
    find_published_basis(values[[0, 2]])
    assert len(decomposed) == 1


def test_without_such_a_head_the_largest_number_in_the_batch_counts():
    values = make_values(1, 1)
    values[0, :, 16:], values[1, :, 3:] = 0, 0
    basis = find_published_basis(values)
    assert basis.rank.tolist() == [16, 16]
    wanted = project(values[:1, :, :16])[0]
    assert (basis.right[0].double() @ basis.right[0].double().mT - wanted).abs().max() <= 1e-5
    assert (basis.right[1] @ (basis.right[1].mT @ values[1]) - values[1]).abs().max() <= 1e-4


def test_fewer_keys_than_value_dimensions_keep_what_exceeds_the_cutoff():
    values = make_values(1, 1, keys=10)
    basis = find_published_basis(values)
    assert basis.rank.tolist() == [10, 10]
    assert (basis.right @ basis.right.mT - torch.eye(10)).abs().max() <= 1e-5


@pytest.mark.parametrize("power", [1, None])
def test_values_that_are_not_finite_are_an_error(power):
    values = make_values(1, power)
    values[1, 3, 3] = torch.nan
    with pytest.raises(InputError, match="NaN or infinite"):
        find_published_basis(values)
