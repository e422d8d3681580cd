"""How much of one attention row its output determines."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import HeadscopeError, InputError
from headscope.effective.projection import rank_tolerance
from headscope.effective.simplex import Extremes, find_extremes

EXACT = 5e-9
"""How far a bound may be from the one that is proved, and a witness from the set it belongs to; rows sum to 1."""

DEPENDENT = 1e-9
"""The row of ones counts as one of V's columns if no more than this share of it, or the rank rule's, lies outside."""


@dataclass(frozen=True)
class RowBounds:
    """The least and greatest value of each weight of a row among all rows with the same output.

    `least_row[j]` is a whole row in which weight j is `least[j]`; `greatest_row[j]` likewise.
    """

    effective: Float[np.ndarray, " key"]
    least: Float[np.ndarray, " key"]
    greatest: Float[np.ndarray, " key"]
    least_row: Float[np.ndarray, "key other"]
    greatest_row: Float[np.ndarray, "key other"]
    rank: int


def interval(weights: Float[Tensor, " key"], values: Float[Tensor, "key value"]) -> RowBounds:
    """The interval of each weight over {x ≥ 0, Σx = Σa, xᵀV = aᵀV}, with only visible keys given.

    V counts as far as its rank goes, by the one rule of the project; the sum counts exactly.
    """
    if not torch.isfinite(values).all() or not torch.isfinite(weights).all():
        raise InputError(
            "Some of this row's weights or values are NaN or infinite, so no interval is defined. "
            "Half-precision models overflow on some inputs: load the model with dtype='float32'."
        )
    row, total = weights.double().cpu(), float(weights.double().sum())
    tolerance = float(rank_tolerance(torch.tensor(len(row)), values.shape[-1], values.dtype))
    basis = _basis(values.double().cpu(), tolerance)
    if total <= 0:  # all of the attention is on a sink outside the keys
        nothing = np.zeros((len(row), len(row)))
        return RowBounds(nothing[0], nothing[0], nothing[0], nothing, nothing, basis.shape[1])
    equations = _with_sum(basis, tolerance)
    extremes = find_extremes((row / total).numpy(), equations.numpy())
    _prove(extremes, row / total, equations)
    greatest, least = total * extremes.rows
    effective = basis @ (basis.T @ row)
    return RowBounds(effective.numpy(), least.diagonal(), greatest.diagonal(), least, greatest, basis.shape[1])


def _basis(values: Tensor, tolerance: float) -> Tensor:
    """An orthonormal basis of V's column space, of as many columns as V has rank."""
    left, sizes, _ = torch.linalg.svd(values, full_matrices=False)
    basis: Tensor = left[:, sizes > sizes[:1] * tolerance]
    return basis


def _with_sum(basis: Tensor, tolerance: float) -> Tensor:
    """The basis and the row of ones together, orthonormal again."""
    ones = torch.full((len(basis), 1), len(basis) ** -0.5, dtype=basis.dtype)
    rest = ones - basis @ (basis.T @ ones)
    size = float(rest.norm())
    if size > max(tolerance, DEPENDENT):
        rest = rest / size
        rest = rest - basis @ (basis.T @ rest)  # once more, for what the subtraction lost
        return torch.cat([basis, rest / rest.norm()], dim=1)
    left, sizes, _ = torch.linalg.svd(basis - ones @ (ones.T @ basis), full_matrices=False)
    return torch.cat([ones, left[:, sizes > 0.5]], dim=1)  # all are 1 but one, which is the ones' own


def _prove(extremes: Extremes, row: Tensor, equations: Tensor) -> None:
    """Check every witness against the constraints and every bound against its proof; raise an error if one fails."""
    rows, proofs = (torch.from_numpy(table) for table in (extremes.rows, extremes.proofs))  # side key other
    signs = torch.tensor([[1.0], [-1.0]], dtype=row.dtype)
    outside = ((rows - row) @ equations).abs().amax(-1)
    total = (rows - row).sum(-1).abs()
    reached = signs * rows.diagonal(dim1=1, dim2=2)
    below = (torch.eye(len(row), dtype=row.dtype) * signs[:, :, None] - proofs).amax(-1).clamp(min=0)
    loose = (proofs - (proofs @ equations) @ equations.T).norm(dim=-1)  # what lies outside the equations' space
    bound = proofs @ row + below + loose * 2**0.5
    bound[1] = bound[1].clamp(max=0)  # no weight is below zero
    worst = torch.stack([outside, total, (bound - reached).abs()]).amax((0, 1))
    if not float(worst.max()) <= EXACT:
        raise HeadscopeError(
            f"The interval of key {int(worst.argmax())} could not be proved: it is uncertain by {worst.max():.1e}, "
            f"more than {EXACT:.0e}. The values of these keys may be nearly dependent; try the model in float64."
        )
