"""Effective attention of one layer, with what must be known to trust it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.maps import Factored
from headscope.core.projection import Projection, independent, project, project_rows
from headscope.core.trace import Trace, Visible, shared_keys

Keys = Literal["visible", "padded", "paper"]

NEEDS: dict[Keys, frozenset[str]] = {
    "visible": frozenset({"attention", "values"}),
    "padded": frozenset({"attention", "values", "pads"}),
    "paper": frozenset({"attention", "values", "pads"}),
}

PAPER_CUT = 12 * torch.finfo(torch.float32).eps
"""The absolute cut on singular values in the published code of Sun & Marasović (2021), 1.43e-6."""


@dataclass(frozen=True)
class EffectiveLayer:
    """The effective attention of a layer, and its diagnostics by name."""

    part: Tensor | Factored
    diagnostics: dict[str, Tensor]  # batch head


def effective_layers(trace: Trace, keys: Keys) -> Iterator[EffectiveLayer]:
    """Effective attention of every layer of a trace.

    `visible`: each row within the keys it can see, exact. `padded`: rows of padding take part as if they were keys,
    still exact. `paper`: the same, then the columns of padding are cut off, as the published code does; not exact.
    """
    assert trace.values is not None, "a lens is called through hs.view, which checks what the trace holds"
    contexts = trace.context if trace.context is not None else [None] * len(trace.layers)
    masks = {id(visible): visible for visible in trace.visible}  # layers often share one
    shared = {name: shared_keys(visible) for name, visible in masks.items()}
    layers = zip(trace.layers, trace.attention, trace.values, trace.visible, contexts, strict=True)
    for label, attention, values, visible, context in layers:
        seen = shared[id(visible)]
        if seen is None and keys != "visible":
            raise InputError(
                f"keys='{keys}' treats padding as keys that every query sees, but in layer {label} queries differ in "
                "the keys they see (a causal or sliding mask). Use keys='visible'."
            )
        if seen is None:
            yield _by_row(attention, values, visible)
        elif keys == "paper":
            yield _as_published(attention, values, seen, context)
        else:
            yield _shared(attention, values, seen if keys == "visible" else torch.ones_like(seen), context)


def _shared(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    keys: Bool[Tensor, "batch key"],
    context: Float[Tensor, "batch head query value"] | None,
) -> EffectiveLayer:
    """Every query sees the same keys."""
    seen = keys[:, None].expand(-1, attention.shape[1], -1)
    count = seen.sum(-1)
    if bool((count <= values.shape[-1]).all()) and bool(independent(values, seen).all()):
        ones = torch.ones(count.shape, device=count.device)
        return EffectiveLayer(_widened(attention), _diagnostics(count, count, 0 * ones, ones))
    found = project(attention, values, seen, context)
    size = _size(found.left)  # ‖B·Qᵀ‖ = ‖B‖, for the columns of Q are orthonormal
    return _measured(found, attention, values, count, context, size)


def _as_published(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    keys: Bool[Tensor, "batch key"],
    context: Float[Tensor, "batch head query value"] | None,
) -> EffectiveLayer:
    """One rank for the whole batch, an absolute cut, padding among the keys and then cut off."""
    basis, sizes, _ = torch.linalg.svd(_widened(values), full_matrices=False)
    kept = int((sizes > PAPER_CUT).sum(-1).max())
    basis = basis[..., :kept]
    left = _widened(attention) @ basis
    rank = torch.full(sizes.shape[:-1], kept, device=sizes.device)
    found = Projection(left, basis * keys[:, None, :, None], rank)
    count = torch.full_like(rank, values.shape[-2])
    return _measured(found, attention, values, count, context, _size(left @ found.right.mT))


def _by_row(
    attention: Float[Tensor, "batch head query key"], values: Float[Tensor, "batch head key value"], visible: Visible
) -> EffectiveLayer:
    """Queries differ in what they see: n and rank are those of the query that sees most."""
    effective, ranks = project_rows(attention, values, visible)
    widest = visible.sum(-1).argmax(-1)  # batch
    count = visible.sum(-1).amax(-1)[:, None].expand(-1, attention.shape[1])
    rank = ranks.gather(-1, widest[:, None, None].expand(-1, attention.shape[1], 1))[..., 0]
    wide, thin = _widened(attention), _widened(values)
    residual = _ratio(_size((effective - wide) @ thin), _size(wide @ thin))
    return EffectiveLayer(effective, _diagnostics(count, rank, residual, _ratio(_size(effective), _size(wide))))


def _measured(
    found: Projection, attention: Tensor, values: Tensor, count: Tensor, context: Tensor | None, size: Tensor
) -> EffectiveLayer:
    """The residual comes from the thin factors, which is far cheaper than from the maps."""
    wide, thin = _widened(attention), _widened(values)
    target = context if context is not None and context.dtype == wide.dtype else wide @ thin
    change = (found.left @ (found.right.mT @ thin)).sub_(target)
    residual, share = _ratio(_size(change), _size(target)), _ratio(size, _size(wide))
    return EffectiveLayer(Factored(found.left, found.right), _diagnostics(count, found.rank, residual, share))


def _diagnostics(count: Tensor, rank: Tensor, residual: Tensor, share: Tensor) -> dict[str, Tensor]:
    return {"n": count, "rank": rank, "null": count - rank, "residual": residual, "share": share}


def _size(matrix: Tensor) -> Tensor:
    """The Frobenius norm, row by row first: rows lie together in memory, whole matrices may not."""
    size: Tensor = torch.linalg.vector_norm(torch.linalg.vector_norm(matrix, dim=-1), dim=-1)
    return size


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole, where nothing out of nothing is nothing."""
    return torch.where(whole > 0, part / whole, part)


def _widened(tensor: Tensor) -> Tensor:
    """At least float32: half precision is for storing weights, not for projecting them."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
