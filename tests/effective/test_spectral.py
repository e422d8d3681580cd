"""The projector on what counts is that of the eigenvectors, or it says that it is not sure."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.effective.spectral import by_eigenvectors, counting

TOLERANCE = 1e-5


def made(shares, size=8, seed=0):
    """A matrix with eigenvalues that are these shares of the cut beside one of ordinary size, and its projector."""
    basis, _ = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64, generator=torch.manual_seed(seed)))
    sizes = torch.ones(size, dtype=torch.float64)
    sizes[: len(shares)] = torch.tensor(shares, dtype=torch.float64) * TOLERANCE**2
    kept = basis * (sizes > TOLERANCE**2)
    return (basis * sizes) @ basis.mT, kept @ kept.mT


def told(gram):
    kept, sure = counting(gram[None], torch.tensor([TOLERANCE], dtype=torch.float64))
    return kept[0], bool(sure)


@settings(max_examples=60, deadline=None)
@given(
    shares=st.lists(st.one_of(st.floats(0, 0.98), st.floats(1.02, 1e9)), max_size=7),
    seed=st.integers(0, 1000),
    scale=st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_what_is_away_from_the_cut_is_told_as_eigenvectors_tell_it(shares, seed, scale):
    gram, kept = made(shares, seed=seed)
    found, sure = told(scale * gram)
    assert sure
    torch.testing.assert_close(found, kept, atol=1e-5, rtol=0)  # the eigenvectors themselves are not known better


@pytest.mark.parametrize("share", [1 - 1e-6, 1.0, 1 + 1e-6])
def test_what_lies_on_the_cut_is_not_sure(share):
    assert not told(made([share])[0])[1]


def test_nothing_counts_in_nothing():
    found, sure = told(torch.zeros(8, 8, dtype=torch.float64))
    assert sure
    assert not found.any()


def test_what_is_not_finite_is_not_sure():
    assert not told(torch.full((8, 8), torch.nan, dtype=torch.float64))[1]


def test_eigenvectors_give_the_same_projector():
    gram, kept = made([0.1, 0.5, 4.0, 100.0])
    found = by_eigenvectors(gram[None], torch.tensor([TOLERANCE], dtype=torch.float64))[0]
    torch.testing.assert_close(found, kept, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [4, 32, 64, 128])
def test_a_flat_spectrum_has_the_right_largest_value(size):
    """Here a mean weighted by powers is furthest from the largest: what is just off the cut must still be told."""
    sizes = torch.linspace(0.9, 1.0, size, dtype=torch.float64)
    sizes[0] = 1.03 * TOLERANCE**2
    sizes[1] = 0.97 * TOLERANCE**2
    found, sure = told(torch.diag(sizes))
    assert sure
    assert found.diagonal()[:2].tolist() == pytest.approx([1, 0], abs=1e-6)
