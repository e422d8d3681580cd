"""Cholesky factors of Gram matrices: their inverses, and bounds that prove full rank."""

import torch
from jaxtyping import Float
from torch import Tensor

GRAM_ERROR = 8 * torch.finfo(torch.float64).eps
"""The relative error of a condition bound κ from a float64 Gram matrix is at most about this times κ²."""

MAX_WHOLE_INVERSES = 1536
"""Number of triangular matrices up to which a GPU inverts each as a whole; more are inverted by halves."""


def cholesky_inverse(gram: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return L⁻¹ with L·Lᵀ = gram, its Frobenius norm, and a bound on the condition number of L.

    Norm and bound are infinite where there is no factor, and NaN where the matrix is not finite.
    """
    halved = gram.is_cuda and gram.numel() // gram.shape[-1] ** 2 > MAX_WHOLE_INVERSES
    inverse, failed = _lower_inverse(gram, halved=halved)
    norm = torch.linalg.vector_norm(inverse, dim=(-2, -1)) / (failed == 0)  # x / 0 is infinite
    return inverse, norm, bound_norm(gram) * norm


def bound_norm(gram: Tensor) -> Tensor:
    """Return an upper bound on ‖L‖₂ from G = L·Lᵀ: the root of ‖G‖_F.

    For random values it is a third of ‖L‖_F, so that fewer problems remain unproved.
    """
    norm: Tensor = torch.linalg.vector_norm(gram, dim=(-2, -1))
    return norm.sqrt()


def _lower_inverse(gram: Tensor, *, halved: bool) -> tuple[Tensor, Tensor]:
    """Return L⁻¹ and where the factorization failed, as a whole or from the inverses of two halves."""
    value = gram.shape[-1]
    if not halved or value <= 32:
        factor, failed = torch.linalg.cholesky_ex(gram)
        eye = torch.eye(value, dtype=gram.dtype, device=gram.device).expand_as(gram)
        return torch.linalg.solve_triangular(factor, eye, upper=False), failed
    half = value // 2
    # L = [[A, 0], [B, C]] has the inverse [[A⁻¹, 0], [−C⁻¹·B·A⁻¹, C⁻¹]], and C·Cᵀ is the Schur complement
    first, first_failed = _lower_inverse(gram[..., :half, :half], halved=True)
    below = gram[..., half:, :half] @ first.mT  # lower left block of L
    second, second_failed = _lower_inverse(gram[..., half:, half:] - below @ below.mT, halved=True)
    inverse = torch.zeros_like(gram)
    inverse[..., :half, :half], inverse[..., half:, half:] = first, second
    inverse[..., half:, :half] = -(second @ below @ first)
    return inverse, first_failed + second_failed


def orthonormalize(columns: Float[Tensor, "*shape key value"]) -> Float[Tensor, "*shape key value"]:
    """Take one Newton–Schulz step from nearly orthonormal columns, Q·(3I − QᵀQ)/2."""
    eye = torch.eye(columns.shape[-1], dtype=columns.dtype, device=columns.device)
    return columns @ (1.5 * eye - 0.5 * (columns.mT @ columns))


def proves_rank(condition: Tensor, tolerance: Tensor) -> Tensor:
    """Return whether a condition bound from a Gram matrix proves full rank under the rank rule."""
    return condition * tolerance * (1 + GRAM_ERROR * condition.square()) < 1
