"""Which directions of a Gram matrix count, for thousands of small ones at once.

Eigenvectors would say, but on a GPU they cost many times what the model does. Only the projector on those that count is
needed. With τ the cut, τ(G + τI)⁻¹ has the eigenvectors of G, and eigenvalues above 1/2 exactly for those that do not
count; McWeeny's polynomial 3x² − 2x³ drives such values to 1, and all others to 0. That takes products alone.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.effective.projection import eigenbasis, inverse_factor

ROUNDS = 18
"""So many settle every eigenvalue that is 1 % or more away from the cut; others are said to be unsure."""

SETTLED = 1e-9
EARLY, LATE = 64, 8
"""The largest eigenvalue is found from the power EARLY · LATE, in two steps, so that small ones do not underflow."""


def counting(
    gram: Float[Tensor, "many size size"], tolerance: Float[Tensor, "many"]
) -> tuple[Float[Tensor, "many size size"], Bool[Tensor, "many"]]:
    """The projector on the eigenvectors whose eigenvalue exceeds tolerance² of the largest, and whether it is sure."""
    unit = gram / _positive(trace_of(gram))[:, None, None]
    cut = _positive(_largest(unit) * tolerance.square())[:, None, None]
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    inverse, _ = inverse_factor(unit + cut * eye)
    rest = cut * (inverse @ inverse.mT)
    for _ in range(ROUNDS):
        squared = rest @ rest
        rest = torch.baddbmm(squared, squared, rest, beta=3, alpha=-2)
    sure = (rest @ rest - rest).abs().amax((-2, -1)) < SETTLED
    return eye - rest, sure


def by_eigenvectors(
    gram: Float[Tensor, "many size size"], tolerance: Float[Tensor, "many"]
) -> Float[Tensor, "many size size"]:
    """The same projector, from eigenvectors, by the host: for the few that are not sure."""
    kept, _ = eigenbasis(gram, tolerance)
    return kept @ kept.mT


def _largest(unit: Tensor) -> Tensor:
    """The largest eigenvalue of each matrix, to less than 1 %: a mean of all, weighted by a high power of each."""
    power = torch.linalg.matrix_power(unit, EARLY)
    power = torch.linalg.matrix_power(power / _positive(trace_of(power))[:, None, None], LATE)
    weight = power.square().sum((-2, -1))
    largest: Tensor = ((unit @ power) * power).sum((-2, -1)) / _positive(weight)
    return largest


def trace_of(matrix: Tensor) -> Tensor:
    """The sum of each diagonal."""
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)


def _positive(number: Tensor) -> Tensor:
    """1 in place of nothing, so that nothing divided by it stays nothing."""
    return torch.where(number > 0, number, 1)
