"""The linear algebra of effective attention.

Only the part of a row of A that lies in the column space of V reaches the output A·V. With Q an orthonormal basis of
that space, effective attention is A·Q·Qᵀ. A singular value decomposition gives Q but costs more than the model itself;
here a Cholesky factor of the float64 Gram matrix gives it wherever a bound on its condition proves that nothing is
lost, and the decomposition is left for the few heads where it does not.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.errors import InputError

WELL_CONDITIONED = 4.0
"""Up to this many times the least that the condition bound can be, d, float32 and the model's own output will do."""

FEW = 256
"""Up to so many factors a GPU inverts each as a whole, which takes fewer steps; of more, halves are quicker."""


@dataclass(frozen=True)
class Projection:
    """Effective attention in factored form, A_eff = left · rightᵀ."""

    left: Float[Tensor, "*many query inner"]
    right: Float[Tensor, "*many key inner"]
    rank: Int[Tensor, "*many"]


def rank_tolerance(
    count: Int[Tensor, "*many"], value: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*many"]:
    """The one rank rule: a singular value counts if it exceeds this share of the largest.

    `count` is the number of visible keys, never the padded width. Below float64 the unit is that of float32: in
    bfloat16's own, the cut would swallow everything.
    """
    eps = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    return count.clamp(min=value).double() * eps


def project(
    attention: Float[Tensor, "*many query key"],
    values: Float[Tensor, "*many key value"],
    keys: Bool[Tensor, "*many key"],
    context: Float[Tensor, "*many query value"] | None = None,
) -> Projection:
    """Project every row of attention on the column space of the values, all rows seeing the same keys.

    `context` is A·V where it is known already; it saves a product.
    """
    many, width = attention.shape[:-2], values.shape[-2]
    exact = attention.dtype if attention.dtype == torch.float64 else torch.float32
    flat = attention.flatten(0, -3).to(exact)
    thin = _hidden(values, keys).flatten(0, -3).to(exact)
    seen = keys.flatten(0, -2)
    basis = _decomposed(thin, seen) if exact == torch.float64 else _basis(thin, seen)
    if context is not None and basis.inverse is not None and attention.dtype == context.dtype == exact:
        left = context.flatten(0, -3) @ basis.inverse
    else:
        left = flat @ basis.right
    shape = (*many, -1, basis.right.shape[-1])
    return Projection(left.reshape(shape), basis.right.reshape(*many, width, -1), basis.rank.reshape(many))


def independent(values: Float[Tensor, "*many key value"], keys: Bool[Tensor, "*many key"]) -> Bool[Tensor, "*many"]:
    """Where the visible rows of V are proved linearly independent, so that effective attention is attention itself."""
    seen = keys.flatten(0, -2)
    if bool((seen.sum(-1) > values.shape[-1]).any()):
        raise InputError(f"More than {values.shape[-1]} rows of that many values cannot be independent.")
    return _front(_hidden(values, keys).flatten(0, -3), seen).full.reshape(keys.shape[:-1])


def _hidden(values: Tensor, keys: Tensor) -> Tensor:
    """The values with the rows of keys that nobody sees set to zero."""
    return values if bool(keys.all()) else values * keys[..., None]


@dataclass(frozen=True)
class _Basis:
    """An orthonormal basis of each column space; `inverse` is R⁻¹ where V·R⁻¹ is that basis for all of them."""

    right: Tensor  # many key inner
    rank: Tensor  # many
    inverse: Tensor | None = None


def _basis(values: Tensor, seen: Tensor) -> _Basis:
    """The basis by the cheapest road that is proved safe, head by head."""
    short = seen.sum(-1) <= values.shape[-1]
    if short.all() or not short.any():
        return (_short if short.all() else _tall)(values, seen)
    right = torch.zeros_like(values)
    rank = torch.zeros(len(values), dtype=torch.long, device=values.device)
    for some, road in ((short, _short), (~short, _tall)):
        part = road(values[some], seen[some])
        right[some], rank[some] = part.right, part.rank
    return _Basis(right, rank)


def _tall(values: Tensor, seen: Tensor) -> _Basis:
    """More keys than value dimensions: V = Q·R with RᵀR the Gram matrix VᵀV."""
    wide, count = values.double(), seen.sum(-1)
    inverse, condition = inverse_factor(wide.mT @ wide)
    full = condition * rank_tolerance(count, values.shape[-1]) < 1
    rank = torch.where(full, values.shape[-1], 0)
    if bool((full & (condition <= WELL_CONDITIONED * values.shape[-1])).all()):
        inverse = inverse.to(values.dtype)
        return _Basis(values @ inverse, rank, inverse)
    return _completed(values, seen, (wide @ inverse.nan_to_num()).to(values.dtype), rank, full)


def _short(values: Tensor, seen: Tensor) -> _Basis:
    """No more keys than value dimensions: independent rows of V leave nothing out, so the basis is the identity."""
    front, count = _front(values, seen), seen.sum(-1)
    places = torch.arange(values.shape[-2], device=values.device)
    choice = ((front.index[:, None, :] == places[:, None]) & front.held[:, None, :]).to(values)  # many key place
    rank = torch.where(front.full, count, 0)
    if not bool(front.full.all()):
        lost = ~front.full
        basis, rank[lost] = eigenbasis(front.gram[lost], rank_tolerance(count[lost], values.shape[-1]))
        choice[lost] = choice[lost] @ basis.to(values)
    right = torch.zeros_like(values)
    right[..., : choice.shape[-1]] = choice
    return _Basis(right, rank)


@dataclass(frozen=True)
class _Front:
    """The visible keys moved to the front: which they are, the places they fill, and the Gram matrix of their rows."""

    index: Tensor  # many place
    held: Tensor  # many place
    gram: Tensor  # many place place
    full: Tensor  # many: the rows are proved independent


def _front(values: Tensor, seen: Tensor) -> _Front:
    value, count = values.shape[-1], seen.sum(-1)
    index, held = to_front(seen, value)
    rows = (values.gather(1, index[..., None].expand(-1, -1, value)) * held[..., None]).double()
    gram = rows @ rows.mT
    size = gram.diagonal(dim1=-2, dim2=-1).sum(-1) / count.clamp(min=1)  # ordinary, so it leaves the condition alone
    _, condition = inverse_factor(gram + torch.diag_embed((~held).double() * size[:, None]))
    return _Front(index, held, gram, condition * rank_tolerance(count, value) < 1)


def to_front(seen: Bool[Tensor, "many key"], most: int) -> tuple[Int[Tensor, "many place"], Bool[Tensor, "many place"]]:
    """The keys that are seen moved to the front, `most` of them, and which places they fill."""
    order = seen.to(torch.int8).sort(dim=-1, descending=True, stable=True)
    return order.indices[:, :most], order.values[:, :most].bool()


def eigenbasis(
    gram: Float[Tensor, "many size size"], tolerance: Float[Tensor, "many"]
) -> tuple[Float[Tensor, "many size size"], Int[Tensor, "many"]]:
    """The eigenvectors whose eigenvalue exceeds tolerance² of the largest, others 0, and how many they are.

    Those of V·Vᵀ are the left singular vectors of V. The host finds them.
    """
    _check_finite(gram)
    sizes, vectors = (each.to(gram.device) for each in torch.linalg.eigh(gram.cpu()))  # as in _decomposed
    kept = sizes > sizes[:, -1:] * tolerance[:, None].square()
    return vectors * kept[:, None, :], kept.sum(-1)


def inverse_factor(gram: Tensor) -> tuple[Tensor, Tensor]:
    """R⁻¹ with RᵀR = gram, and ‖R‖·‖R⁻¹‖, which is at least the condition of R; infinite where there is no R, NaN
    where the matrix is not finite."""
    inverse, condition, _ = sized_inverse_factor(gram)
    return inverse, condition


def sized_inverse_factor(gram: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same, and ‖R‖."""
    many = gram.is_cuda and gram.numel() // gram.shape[-1] ** 2 > FEW
    inverse, failed = _lower_inverse(gram, halved=many)
    size = gram.diagonal(dim1=-2, dim2=-1).sum(-1).sqrt()  # ‖R‖² is the trace of RᵀR
    condition = size * torch.linalg.vector_norm(inverse, dim=(-2, -1))
    return inverse.mT, condition.masked_fill(failed > 0, torch.inf), size


def _lower_inverse(gram: Tensor, *, halved: bool) -> tuple[Tensor, Tensor]:
    """L⁻¹ with LLᵀ = gram, and where that failed; at once, or from the inverses of its halves."""
    value = gram.shape[-1]
    if not halved or value <= 32:
        factor, failed = torch.linalg.cholesky_ex(gram)
        eye = torch.eye(value, dtype=gram.dtype, device=gram.device).expand_as(gram)
        return torch.linalg.solve_triangular(factor, eye, upper=False), failed
    half = value // 2
    first, wrong = _lower_inverse(gram[..., :half, :half], halved=True)
    below = gram[..., half:, :half] @ first.mT  # the lower left block of L
    second, also = _lower_inverse(gram[..., half:, half:] - below @ below.mT, halved=True)
    inverse = torch.zeros_like(gram)
    inverse[..., :half, :half], inverse[..., half:, half:] = first, second
    inverse[..., half:, :half] = -(second @ below @ first)
    return inverse, wrong + also


def _completed(values: Tensor, seen: Tensor, right: Tensor, rank: Tensor, full: Tensor) -> _Basis:
    """Decompose the heads whose full rank was not proved."""
    if not bool(full.all()):
        part = _decomposed(values[~full], seen[~full])
        right[~full], rank[~full] = 0, part.rank
        right[~full, :, : part.right.shape[-1]] = part.right
    return _Basis(right, rank)


def _decomposed(values: Tensor, seen: Tensor) -> _Basis:
    """The basis and the rank by a float64 singular value decomposition, by the host: GPUs give away digits there."""
    _check_finite(values)
    left, sizes, _ = (each.to(values.device) for each in torch.linalg.svd(values.double().cpu(), full_matrices=False))
    kept = sizes > sizes[..., :1] * rank_tolerance(seen.sum(-1), values.shape[-1], values.dtype)[..., None]
    exact = left * kept[..., None, :] * seen[..., None]  # rows of zeros come back as dust, not as zeros
    return _Basis(exact.to(values.dtype), kept.sum(-1))


def _check_finite(values: Tensor) -> None:
    if not torch.isfinite(values).all():
        raise InputError(
            "Some values of this layer are NaN or infinite, so no projection is defined. "
            "Half-precision models overflow on some inputs: load the model with dtype='float32'."
        )
