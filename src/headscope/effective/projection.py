"""Projection of attention on the column space of the values.

Only the part of a row of A in the column space of V reaches the output A·V. With Q an orthonormal basis of that space,
effective attention is A·Q·Qᵀ. The basis is computed on one of two code paths:

1. *Full rank proved.* A Cholesky factor R of the float64 Gram matrix VᵀV gives Q = V·R⁻¹, and a bound on ‖R‖₂·‖R⁻¹‖₂
   proves full rank under the rank rule. With no more keys than value dimensions, the
   Gram matrix VVᵀ proves that the rows of V are independent, so that A_eff = A.
2. *Everything else.* Equal rows of V are merged. If the rest is not proved independent, a float64 singular value
   decomposition, for those heads only.

Absolute error of a map against a float64 decomposition: at most 1e-6 on both paths.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.trace import at_least_float32
from headscope.core.transfer import copy_to_host_async
from headscope.effective.cholesky import GRAM_ERROR, cholesky_inverse, orthonormalize, proves_rank

WELL_CONDITIONED = 64.0
"""Condition bound up to which float32 products suffice with 64 value dimensions or more; with d < 64, (d / 64)^¾ of it.

The bound is d^¾ for orthonormal columns: with few dimensions, values of the same bound are conditioned worse."""

NEARLY_ORTHONORMAL = 1e3
"""Condition bound up to which V·R⁻¹ in float64 is orthonormal to 1e-9: the error is about eps64 · κ²."""


@dataclass(frozen=True)
class Basis:
    """Orthonormal bases of column spaces; columns beyond the rank are zero."""

    right: Float[Tensor, "problem key value"] | None  # Q; None: all rows of V are independent, so A_eff = A
    rank: Int[Tensor, " problem"]
    inverse: Float[Tensor, "problem value value"] | None = None  # R⁻¹ where Q = V·R⁻¹ and float32 suffices


@dataclass(frozen=True)
class Projection:
    """Effective attention in factored form, A_eff = left · rightᵀ."""

    left: Float[Tensor, "problem query value"]
    right: Float[Tensor, "problem key value"]
    rank: Int[Tensor, " problem"]


def rank_tolerance(
    count: Int[Tensor, "*shape"], value: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape"]:
    """Return the share of the largest singular value above which a singular value counts: max(n, d)·eps.

    This is the one rank rule of all code paths. `count` is n, the number of visible keys, without padding. Below
    float64, eps is that of float32: with the eps of bfloat16 no direction would count.
    """
    eps = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    return count.clamp(min=value).double() * eps


def project(
    attention: Float[Tensor, "problem query key"],
    values: Float[Tensor, "problem key value"],
    keys: Bool[Tensor, "problem key"],
    context: Float[Tensor, "problem query value"] | None = None,
) -> Projection:
    """Project every row of attention on the column space of the visible values.

    All queries of a problem (one head of one example) see the same `keys`. `context` is A·V, if known.
    """
    dtype = torch.float64 if attention.dtype == torch.float64 else torch.float32
    (basis,) = column_bases(values.to(dtype)[None], keys, keys.sum(-1).cpu())
    right = identity_columns(keys, values.shape[-1], dtype) if basis.right is None else basis.right
    return Projection(project_left(attention, basis.inverse, right, context), right, basis.rank)


def project_left(attention: Tensor, inverse: Tensor | None, right: Tensor, context: Tensor | None) -> Tensor:
    """Return A·Q, on a CPU from A·V where that loses no precision; on a GPU it would gain nothing."""
    reuses_context = context is not None and not context.is_cuda and context.dtype == attention.dtype == right.dtype
    if inverse is not None and context is not None and reuses_context:
        return context @ inverse
    return attention.to(right.dtype) @ right


def column_bases(
    values: Float[Tensor, "layer problem key value"], keys: Bool[Tensor, "problem key"], counts: Int[Tensor, " problem"]
) -> list[Basis]:
    """Return the bases of each layer. The host waits for a GPU once, or twice where only some examples are short.

    `counts` is the number of visible keys of each problem, on the CPU. Bases of values in half precision are float32.
    """
    least, most = (int(bound) for bound in counts.aminmax())
    visible = values if least == keys.shape[-1] else values * keys[..., None]
    if values.dtype == torch.float64:
        check_finite(values)
        tolerance = rank_tolerance(counts, values.shape[-1], torch.float64)
        return [Basis(*_svd_basis(layer, keys, tolerance)) for layer in visible]
    if least > values.shape[-1]:
        return _tall_bases(visible, keys, counts)
    visible = at_least_float32(visible)
    if most <= values.shape[-1]:
        return _short_bases(visible, keys, counts)
    short = counts <= values.shape[-1]
    few, more = (mask.nonzero()[:, 0].to(values.device) for mask in (short, ~short))
    pairs = (
        _short_bases(visible[:, few], keys[few], counts[short]),
        _tall_bases(visible[:, more], keys[more], counts[~short]),
    )
    return [_merge(one, few, other, more, keys) for one, other in zip(*pairs, strict=True)]


def _merge(short: Basis, few: Tensor, tall: Basis, more: Tensor, keys: Tensor) -> Basis:
    """Put the bases of short and of tall problems in their places."""
    assert tall.right is not None
    value, dtype = tall.right.shape[-1], tall.right.dtype
    right, rank = tall.right.new_zeros(*keys.shape, value), tall.rank.new_zeros(len(keys))
    right[few] = identity_columns(keys[few], value, dtype) if short.right is None else short.right
    right[more], rank[few], rank[more] = tall.right, short.rank, tall.rank
    return Basis(right, rank)


def _tall_bases(values: Tensor, keys: Tensor, counts: Tensor) -> list[Basis]:
    """Bases of problems with more keys than value dimensions.

    Path 1 in float32 has an error of at most about 5 · eps32, see WELL_CONDITIONED. In float64 the error of
    orthogonality is about eps64 · κ², κ ≤ 1e3; above, one Newton–Schulz step takes it to its square.
    """
    bases, inverse, condition = prove_bases(values, counts)
    if bases is not None:
        return bases
    values = at_least_float32(values)
    # inverses of matrices without a factor are NaN: those bases are replaced below
    right = orthonormalize(values.double() @ inverse.mT.nan_to_num()).to(values.dtype)
    rank = torch.full(keys.shape[:1], values.shape[-1], device=values.device)
    lost = ~proves_rank(condition, rank_tolerance(counts, values.shape[-1]).to(values.device))
    return [_replace_lost(Basis(right[layer], rank), lost[layer], values[layer], keys) for layer in range(len(values))]


def prove_bases(
    values: Float[Tensor, "layer problem key value"], counts: Int[Tensor, " problem"]
) -> tuple[list[Basis] | None, Tensor, Tensor]:
    """Return the bases of each layer if all problems are proved to have full rank, R⁻ᵀ, and the condition bounds."""
    value, wide = values.shape[-1], values.double()
    inverse, norm, condition = cholesky_inverse(wide.mT @ wide)
    bounds = copy_to_host_async([condition.amax(-1)])
    right = wide @ inverse.mT if values.is_cuda else None  # a GPU computes this while the host reads the bounds
    worst, limit = bounds()[0].tolist(), float(rank_tolerance(counts, value).max())  # the one synchronisation
    rank = torch.full(values.shape[1:2], value, device=values.device)
    if not all(bound * limit * (1 + GRAM_ERROR * bound**2) < 1 for bound in worst):  # NaN: not proved
        return None, inverse, condition
    well = WELL_CONDITIONED * min(1.0, value / 64) ** 0.75
    if right is None and max(worst) <= well and float(norm.amax()) < torch.finfo(torch.float32).max:
        thin = inverse.mT.float()
        rights = values.float() @ thin
        return (
            [Basis(right, rank, thin_inverse) for right, thin_inverse in zip(rights, thin, strict=True)],
            inverse,
            condition,
        )
    right = wide @ inverse.mT if right is None else right
    right = right if max(worst) <= NEARLY_ORTHONORMAL else orthonormalize(right)
    return [Basis(basis, rank) for basis in right.float()], inverse, condition


def _short_bases(values: Tensor, keys: Tensor, counts: Tensor) -> list[Basis]:
    """Bases of problems with at most as many keys as value dimensions: the identity where the rows are independent."""
    count = counts.to(values.device, non_blocking=True)
    proved = _proves_independent(values, keys, rank_tolerance(count, values.shape[-1]))
    bases = []
    for layer, all_proved in enumerate(proved.all(-1).tolist()):
        if all_proved:
            bases.append(Basis(None, count))
        else:
            identity = Basis(identity_columns(keys, values.shape[-1], values.dtype), count)
            bases.append(_replace_lost(identity, ~proved[layer], values[layer], keys))
    return bases


def _proves_independent(values: Tensor, keys: Tensor, tolerance: Tensor) -> Tensor:
    """Return for which problems a float64 Gram matrix proves that the visible rows of V are independent."""
    value = values.shape[-1]
    index, filled = move_to_front(keys, value)
    rows = (values.gather(-2, index[..., None].expand(*values.shape[:-2], -1, value)) * filled[..., None]).double()
    gram = rows @ rows.mT
    scale = gram.diagonal(dim1=-2, dim2=-1).sum(-1) / filled.sum(-1).clamp(min=1)  # keeps the condition as it is
    _, _, condition = cholesky_inverse(gram + (~filled).double().diag_embed() * scale[..., None, None])
    return proves_rank(condition, tolerance)


def identity_columns(keys: Bool[Tensor, "problem key"], value: int, dtype: torch.dtype) -> Tensor:
    """Return an identity over the visible keys, as `problem key value`: A·I·Iᵀ = A, to the last bit."""
    index, filled = move_to_front(keys, value)
    positions = torch.arange(keys.shape[-1], device=keys.device)[:, None]
    columns = ((index[:, None, :] == positions) & filled[:, None, :]).to(dtype)
    return torch.nn.functional.pad(columns, (0, value - columns.shape[-1]))


def move_to_front(
    keys: Bool[Tensor, "problem key"], most: int
) -> tuple[Int[Tensor, "problem slot"], Bool[Tensor, "problem slot"]]:
    """Return the indices of visible keys, `most` of them, and which slots hold one."""
    order = keys.to(torch.int8).sort(dim=-1, descending=True, stable=True)
    return order.indices[:, :most], order.values[:, :most].bool()


def _replace_lost(basis: Basis, lost: Tensor, values: Tensor, keys: Tensor) -> Basis:
    """Replace the bases of the problems whose full rank is not proved by those of path 2."""
    if not bool(lost.any()):
        return basis
    assert basis.right is not None
    exact = _merged_basis(values[lost], keys[lost])
    assert exact.right is not None
    right, rank = basis.right.clone(), basis.rank.clone()
    right[lost], rank[lost] = exact.right, exact.rank
    return Basis(right, rank)


def _merged_basis(values: Tensor, keys: Tensor) -> Basis:
    """Path 2, with equal rows of V merged first: a token that occurs twice often has the same values.

    D assigns keys to distinct rows U, and C = DᵀD holds their counts, so that V = (D·C^-½)·(C^½·U). The columns of
    D·C^-½ are orthonormal: V and C^½·U have the same singular values, and Q of V is D·C^-½ times Q of C^½·U.
    """
    check_finite(values)
    first, value, wide = _first_equal_row(values, keys), values.shape[-1], values.double()
    distinct = keys & (first == torch.arange(keys.shape[-1], device=keys.device))
    size = torch.zeros_like(wide[..., 0]).scatter_add_(-1, first, keys.double()).sqrt()
    merged = wide * (size * distinct)[..., None]
    tolerance, rank = rank_tolerance(keys.sum(-1), value), distinct.sum(-1)
    right = identity_columns(distinct, value, wide.dtype)
    settled = (rank <= value) & (rank < keys.sum(-1))
    if bool(settled.any()):
        settled[settled.clone()] = _proves_independent(merged[settled], distinct[settled], tolerance[settled])
    if not bool(settled.all()):
        right[~settled], rank[~settled] = _svd_basis(merged[~settled], distinct[~settled], tolerance[~settled])
    scale = torch.where(keys, 1 / size.gather(-1, first), 0)
    return Basis((right.gather(1, first[..., None].expand_as(right)) * scale[..., None]).to(values.dtype), rank)


def _first_equal_row(values: Tensor, keys: Tensor) -> Int[Tensor, "problem key"]:
    """Return for each visible key the first visible key with the same values; for any other key, itself."""
    # one number per row: equal rows have equal codes, so sorting brings them together; `same` rejects chance hits
    weights = torch.linspace(1, 2, values.shape[-1], dtype=torch.float64, device=values.device)
    codes = torch.where(keys, (values.double() * weights).sum(-1), torch.nan).sort(dim=-1, stable=True)
    positions = torch.arange(keys.shape[-1], device=keys.device)
    repeats = torch.nn.functional.pad(codes.values[..., 1:] == codes.values[..., :-1], (1, 0))
    start = torch.where(repeats, 0, positions).cummax(-1).values  # of the run of equal codes
    first = torch.empty_like(codes.indices).scatter_(-1, codes.indices, codes.indices.gather(-1, start))
    same = (values.gather(1, first[..., None].expand_as(values)) == values).all(-1)
    return torch.where(keys & same, first, positions)


def _svd_basis(values: Tensor, keys: Tensor, tolerance: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q and the rank from a float64 decomposition on the CPU, whose error is about eps64 · σ_max / gap."""
    wide, seen = values.double().cpu(), keys.cpu()
    index, filled = move_to_front(seen, max(1, int(seen.sum(-1).max())))
    rows = wide.gather(1, index[..., None].expand(-1, -1, wide.shape[-1])) * filled[..., None]
    left, sizes, _ = torch.linalg.svd(rows, full_matrices=False)
    counted = sizes > sizes[..., :1] * tolerance.cpu()[..., None]
    exact = left * counted[..., None, :] * filled[..., None]  # rows of hidden keys are zero up to rounding
    right = torch.zeros_like(wide)
    right[..., : exact.shape[-1]].scatter_(1, index[..., None].expand_as(exact), exact)
    return right.to(values), counted.sum(-1).to(values.device)


def check_finite(values: Tensor) -> None:
    """Raise InputError for NaN or infinite values."""
    if not bool(torch.isfinite(values).all()):
        raise InputError(
            "Some values of this layer are NaN or infinite, so no projection is defined. "
            "Half-precision models overflow on some inputs: load the model with dtype='float32'."
        )
