"""The basis on which the published code of Sun & Marasović (2021) projects attention.

It decomposes all rows of V, those of padding too, counts the singular values above an absolute cutoff, and keeps as
many left singular vectors of every head as the head with most of them has in the batch. If one head has all, every head
keeps all of its vectors: those of a head of full rank span its columns, and any basis of them gives the same maps. Only
heads whose full rank is not proved are decomposed as the published code does, in float32, since some of their vectors
depend on rounding; on the CPU, for a GPU decomposes one matrix after the other.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.effective.cholesky import orthonormalize, proves_rank
from headscope.effective.projection import Basis, check_finite, prove_bases, rank_tolerance

PAPER_CUTOFF = 12 * torch.finfo(torch.float32).eps
"""Absolute cutoff on singular values in the published code, 1.43e-6."""


def find_published_basis(values: Float[Tensor, "problem key value"]) -> Basis:
    """Return the basis of each problem; the problems are all heads of all examples of a batch."""
    width, value = values.shape[-2:]
    if width >= value and values.dtype == torch.float32:
        counts = torch.full(values.shape[:1], width)
        bases, inverse, condition = prove_bases(values[None], counts)
        tolerance = rank_tolerance(counts, value).to(values.device)
        proved = proves_rank(condition[0], tolerance)
        if bool((proved & (_bound_least(values, tolerance) > PAPER_CUTOFF)).any()):
            return bases[0] if bases is not None else _decompose_lost(values, inverse[0], ~proved)
    left, sizes = _decompose(values)
    counted = int((sizes > PAPER_CUTOFF).sum(-1).max())
    return Basis(left[..., :counted], torch.full(values.shape[:1], counted, device=values.device))


def _bound_least(values: Tensor, tolerance: Tensor) -> Tensor:
    """Return a lower bound on the smallest singular value of each problem of full rank.

    Full rank means that the smallest is more than max(n, d)·eps of the largest, which is at least ‖V‖/√d.
    """
    least: Tensor = torch.linalg.vector_norm(values, dim=(-2, -1)) / values.shape[-1] ** 0.5 * tolerance
    return least


def _decompose_lost(values: Tensor, inverse: Tensor, lost: Tensor) -> Basis:
    """Return all vectors of each problem, from a decomposition for those that are lost, and from R⁻ᵀ for others."""
    right = orthonormalize(values.double() @ inverse.mT.nan_to_num()).to(values.dtype)
    right[lost] = _decompose(values[lost])[0]
    return Basis(right, torch.full(values.shape[:1], values.shape[-1], device=values.device))


def _decompose(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the left singular vectors, on the device of the values, and the singular values."""
    check_finite(values)
    left, sizes, _ = torch.linalg.svd(values.cpu(), full_matrices=False)
    return left.to(values.device), sizes
