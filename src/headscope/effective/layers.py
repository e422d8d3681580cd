"""Effective attention of one layer, with what must be known to trust it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.edit import Heads
from headscope.core.errors import InputError
from headscope.core.maps import Factored
from headscope.core.trace import Trace, Visible, at_least_float32
from headscope.effective.at_once import Layers, effective_at_once
from headscope.effective.bet import all_see, effective_on_a_bet, ordinary
from headscope.effective.causal import project_rows
from headscope.effective.diagnostics import EffectiveLayer, diagnostics, ratio, residual_of, share_of, size
from headscope.effective.in_place import output_at_once
from headscope.effective.projection import Projection, independent, project, rank_tolerance
from headscope.effective.reach import Reach
from headscope.effective.span import seen_of
from headscope.effective.visibility import Sight

Keys = Literal["visible", "padded", "paper"]

NEEDS: dict[Keys, frozenset[str]] = {
    "visible": frozenset({"attention", "values"}),
    "padded": frozenset({"attention", "values", "pads"}),
    "paper": frozenset({"attention", "values", "pads"}),
}

PAPER_CUT = 12 * torch.finfo(torch.float32).eps
"""The absolute cut on singular values in the published code of Sun & Marasović (2021), 1.43e-6."""


def effective_layers(trace: Trace, keys: Keys) -> Iterator[EffectiveLayer]:
    """Effective attention of every layer of a trace.

    `visible`: each row within the keys it can see, exact. `padded`: rows of padding take part as if they were keys,
    still exact. `paper`: the same, then the columns of padding are cut off, as the published code does; not exact.
    """
    assert trace.values is not None, "a lens is called through hs.view, which checks what the trace holds"
    quick: Iterator[EffectiveLayer | None] = repeat(None, len(trace.layers))
    if keys == "visible":
        quick = together(trace) if trace.attention[0].is_cuda else effective_on_a_bet(trace)
    contexts = trace.context if trace.context is not None else [None] * len(trace.layers)
    sights = {id(each): Sight(each) for each in trace.visible}  # layers often share one mask
    layers = zip(trace.layers, trace.attention, trace.values, trace.visible, contexts, quick, strict=True)
    for label, attention, values, visible, context, found in layers:
        if found is None:
            sight = sights[id(visible)]
            found = effective_layer(attention, values, sight, context, keys=keys, label=label)
        yield found


def together(trace: Trace) -> Iterator[EffectiveLayer | None]:
    """All layers of a trace at once, or None for each where they are not alike or queries differ in what they see.

    A model that calls itself causal is believed: its masks lie on the GPU, and to ask them takes all that work.
    """
    assert trace.values is not None
    found = None
    if trace.context is not None and not trace.causal and ordinary(trace):
        seen = trace.keys.real.to(trace.attention[0].device, non_blocking=True)
        reach = Reach(seen, trace.keys.counts.tolist(), trace.values[0].shape[-1])  # tokens lie with the host
        values = torch.stack(list(trace.values))
        values = seen_of(values, reach) if "pads" in trace.held else values
        found = effective_at_once(
            Layers(trace.attention, values, torch.stack(list(trace.context)), reach), all_see(trace, seen)
        )
    return repeat(None, len(trace.layers)) if found is None else iter(found)


def effective_layer(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    sight: Sight,
    context: Float[Tensor, "batch head query value"] | None = None,
    *,
    keys: Keys,
    label: int,
) -> EffectiveLayer:
    """Effective attention of the layer called `label`.

    `context` is A·V where it is known already; it saves a product.
    """
    shared = sight.shared
    if shared is None and keys != "visible":
        raise InputError(
            f"keys='{keys}' treats padding as keys that every query sees, but in layer {label} queries differ in "
            "the keys they see (a causal or sliding mask). Use keys='visible'."
        )
    if shared is None:
        return _by_row(attention, values, sight.visible)
    if keys == "paper":
        return _as_published(attention, values, shared, context)
    reach = sight.reach(values.shape[-1], padded=keys == "padded")
    found = None
    if _at_once(attention, values):
        known = None if context is None else context[None]
        found = effective_at_once(Layers([attention], seen_of(values, reach)[None], known, reach))
    return _shared(attention, values, reach.keys, context) if found is None else found[0]


def effective_output(heads: Heads, keys: Keys) -> Float[Tensor, "batch head query value"]:
    """A_eff·V of a layer, from A and V alone."""
    attention, values, sight = heads.attention, heads.values, heads.sight
    if keys != "paper" and _at_once(attention, values) and sight.shared is not None:
        reach = sight.reach(values.shape[-1], padded=keys == "padded")
        return output_at_once(attention, values, reach, heads.memory, (heads.site, heads.layer, keys))
    part: Tensor | Factored | Projection
    if keys == "paper" or sight.shared is None:
        part = effective_layer(attention, values, sight, keys=keys, label=heads.layer).part
    else:
        part = _projected(attention, values, sight.reach(values.shape[-1], padded=keys == "padded").keys)
    if isinstance(part, Tensor):
        return part @ values.to(part.dtype)
    return part.left @ (part.right.mT @ values.to(part.left.dtype))


def _at_once(attention: Tensor, values: Tensor) -> bool:
    """Whether all heads are best taken at once: on a GPU, in single precision."""
    return attention.is_cuda and attention.dtype == values.dtype == torch.float32


def _projected(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    keys: Bool[Tensor, "batch key"],
    context: Float[Tensor, "batch head query value"] | None = None,
) -> Tensor | Projection:
    """Effective attention where every query sees the same keys: attention itself where nothing is lost."""
    seen = keys[:, None].expand(-1, attention.shape[1], -1)
    short = bool((keys.sum(-1) <= values.shape[-1]).all())
    if short and bool(independent(values, seen).all()):
        return at_least_float32(attention)
    return project(attention, values, seen, context)


def _shared(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    keys: Bool[Tensor, "batch key"],
    context: Float[Tensor, "batch head query value"] | None,
) -> EffectiveLayer:
    """Every query sees the same keys."""
    found = _projected(attention, values, keys, context)
    count = keys.sum(-1)[:, None].expand(-1, attention.shape[1])
    if isinstance(found, Tensor):
        ones = torch.ones(count.shape, device=count.device)
        return EffectiveLayer(found, diagnostics(count, count, lambda: 0 * ones, lambda: ones))
    length = size(found.left)  # ‖B·Qᵀ‖ = ‖B‖, for the columns of Q are orthonormal
    return _measured(found, attention, values, count, context, length)


def _as_published(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    keys: Bool[Tensor, "batch key"],
    context: Float[Tensor, "batch head query value"] | None,
) -> EffectiveLayer:
    """One rank for the whole batch, an absolute cut, padding among the keys and then cut off."""
    everything = torch.ones(values.shape[:-1], dtype=torch.bool, device=values.device)
    found = project(attention, values, everything, context)
    if not _above_cut(found.rank, values):  # the cut bites: singular values, as the published code takes them
        basis, sizes, _ = torch.linalg.svd(at_least_float32(values), full_matrices=False)
        kept = int((sizes > PAPER_CUT).sum(-1).max())
        left = at_least_float32(attention) @ basis[..., :kept]
        found = Projection(left, basis[..., :kept], torch.full_like(found.rank, kept))
    found = replace(found, right=found.right * keys[:, None, :, None])
    count = torch.full_like(found.rank, values.shape[-2])
    return _measured(found, attention, values, count, context, size(found.left @ found.right.mT))


def _above_cut(rank: Tensor, values: Tensor) -> bool:
    """Whether every singular value is proved to lie above the published cut, so that any basis will do.

    Full rank means that the least is more than max(n, d)·eps of the largest, which is at least ‖V‖/√d.
    """
    width, value = values.shape[-2:]
    largest = size(at_least_float32(values)) / value**0.5
    least = largest * rank_tolerance(torch.tensor(width, device=values.device), value).to(largest)
    return width >= value and bool(((rank == value) & (least > PAPER_CUT)).all())


def _by_row(
    attention: Float[Tensor, "batch head query key"], values: Float[Tensor, "batch head key value"], visible: Visible
) -> EffectiveLayer:
    """Queries differ in what they see: n and rank are those of the query that sees most."""
    effective, ranks = project_rows(attention, values, visible)
    widest = visible.sum(-1).argmax(-1)  # batch
    count = visible.sum(-1).amax(-1)[:, None].expand(-1, attention.shape[1])
    rank = ranks.gather(-1, widest[:, None, None].expand(-1, attention.shape[1], 1))[..., 0]
    wide, thin = at_least_float32(attention), at_least_float32(values)
    target = wide @ thin
    residual = partial(_change, effective, thin, target)
    share = ratio(size(effective), size(wide))
    return EffectiveLayer(effective, diagnostics(count, rank, residual, lambda: share))


def _change(effective: Tensor, values: Tensor, target: Tensor) -> Tensor:
    """What effective attention changes in the output, as a share of it."""
    return ratio(size(effective @ values - target), size(target))


def _measured(
    found: Projection, attention: Tensor, values: Tensor, count: Tensor, context: Tensor | None, length: Tensor
) -> EffectiveLayer:
    """The factors with their diagnostics; `length` is the size of the map that they make."""
    wide, thin = at_least_float32(attention), at_least_float32(values)
    target = context if context is not None and context.dtype == wide.dtype else wide @ thin
    residual = partial(residual_of, found.left, found.right, thin, target)
    share = share_of(length, size(wide), count, found.rank)
    table = diagnostics(count, found.rank, residual, lambda: share)
    return EffectiveLayer(Factored(found.left, found.right), table)
