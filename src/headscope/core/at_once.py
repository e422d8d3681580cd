"""Effective attention of all heads at once, of texts of any length and values of any rank.

It is for GPUs, where a question of the host costs more than its answer, and eigenvectors more than the model. A frame W
spans all that V spans: V itself, or rows of the identity where a text has no more tokens than a head has values. Then
A_eff = (A·W·T)(W·T)ᵀ, where T = R⁻¹ with RᵀR = WᵀW, and I for the identity; directions of V that do not count are taken
out of T.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import torch
from torch import Tensor

from headscope.core.diagnostics import EffectiveLayer, diagnostics, residual_of, share_of, size
from headscope.core.maps import Factored
from headscope.core.projection import WELL_CONDITIONED, inverse_factor
from headscope.core.reach import Reach
from headscope.core.recordings import Recordings
from headscope.core.spectral import by_eigenvectors, counting, trace_of

TINY = 1e-200
"""In place of nothing, where something is divided by it or must have an inverse."""


@dataclass(frozen=True)
class Layers:
    """Layers of one shape, in which every real query of a text sees the same keys."""

    attention: Sequence[Tensor]  # each batch head query key, float32
    values: Tensor  # layer batch head key value, zero where no query looks
    context: Tensor | None  # layer batch head query value: A·V, where it is known already
    reach: Reach


def effective_at_once(layers: Layers, fits: Tensor | None = None) -> Sequence[EffectiveLayer] | None:
    """The effective attention of every layer, or None where values are not finite or `fits`, asked along, is false.

    The host waits once, and three times more where values of some head are not proved to have full rank.
    """
    reach, values, context = layers.reach, layers.values, layers.context
    gram = _gram(values, reach)
    inverse, condition = inverse_factor(gram)
    bound = condition * reach.tolerance  # below 1 rank is full
    used = condition.masked_fill(reach.is_short[..., 0, 0], 0) if any(reach.short) else condition
    asked = [bound.amax(), used.amax(), inverse.abs().amax(), *([] if fits is None else [fits.double()])]
    worst, spread, largest, *fit = torch.stack(asked).tolist()  # the one question; NaN is below nothing
    if 0.0 in fit:
        return None
    if worst < 1 and all(reach.short):
        return [_same(each, reach) for each in layers.attention]
    rank = reach.rank.expand(bound.shape)
    gentle = spread <= WELL_CONDITIONED * reach.value and largest < torch.finfo(torch.float32).max
    if worst < 1 and gentle and context is not None and not any(reach.short):
        thin = inverse.to(values.dtype)
        return _measured(layers, list(context @ thin), values @ thin, rank)
    if worst < 1 and gentle:
        right = _in_single(values, inverse, reach)
    elif worst < 1 or _finite(gram):
        turn = _turn(inverse, reach)
        turn, rank = (turn, rank) if worst < 1 else _less(reach, gram, turn, rank, ~(bound < 1))
        right = _in_double(values, turn, reach, gentle=gentle)
    else:
        return None
    left = [each @ part for each, part in zip(layers.attention, right, strict=True)]
    return _measured(layers, left, right, rank)


def output_at_once(attention: Tensor, values: Tensor, reach: Reach, recordings: Recordings) -> Tensor | None:
    """A_eff·V of one layer, or None where values are not finite.

    Nothing is kept but the output, so that a GPU may replay the work from layer to layer.
    """

    def first(values: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
        there, seen = replace(reach, keys=keys), values * keys[:, None, :, None]
        frame, gram = _frame(seen, there), _gram(seen, there)
        inverse, condition = inverse_factor(gram)
        right = (frame @ _turn(inverse, there)).to(values.dtype)
        return (condition * there.tolerance).amax(), right, frame, gram

    def second(gram: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
        there = replace(reach, keys=keys)
        kept, sure = counting(gram.flatten(0, -3), there.tolerance.expand(gram.shape[:-2]).flatten())
        return sure.all(), kept, sure, _solved(gram.flatten(0, -3), kept, _short(there, gram.shape[:-2]))

    road = (reach.value, any(reach.short), all(reach.short))
    bound, right, frame, gram = recordings.run(("first", *road), first, values, reach.keys)
    proved = bound.item() < 1
    if proved and all(reach.short):
        return attention @ values
    if not proved:
        all_sure, kept, sure, turn = recordings.run(("second", *road), second, gram, reach.keys)
        if not all_sure.item():
            if not _finite(gram):
                return None
            tolerance, short = reach.tolerance.expand(gram.shape[:-2]).flatten(), _short(reach, gram.shape[:-2])
            turn, _ = _settled(gram.flatten(0, -3), tolerance, short, kept, sure, turn)
        right = (frame @ turn.reshape(gram.shape)).to(values.dtype)
    return (attention @ right) @ (right.mT @ values)


def _gram(values: Tensor, reach: Reach) -> Tensor:
    """The matrix that says which directions count: VᵀV, or VVᵀ of a short text, its keys in front."""
    wide = values.double()  # … batch head key value
    if not any(reach.short):
        return wide.mT @ wide
    index, held = reach.front
    shape = (*wide.shape[:-2], index.shape[-1], wide.shape[-1])
    rows = wide.gather(-2, index[:, None, :, None].expand(shape)) * held[:, None, :, None]
    gram = rows @ rows.mT
    ordinary = (trace_of(gram) / reach.rank.clamp(min=1)).clamp(min=TINY)
    gram = torch.addcmul(gram, reach.spare, ordinary[..., None, None])  # at spare places it leaves the condition alone
    return gram if all(reach.short) else torch.where(reach.is_short, gram, wide.mT @ wide)


def _frame(values: Tensor, reach: Reach) -> Tensor:
    """W: the values, or rows of the identity for a short text."""
    wide = values.double()
    if not any(reach.short):
        return wide
    if all(reach.short):
        return reach.identity.expand(*wide.shape[:-2], -1, -1)
    return torch.where(reach.is_short, reach.identity, wide)


def _in_single(values: Tensor, inverse: Tensor, reach: Reach) -> Tensor:
    """W·T in single precision, which will do where everything counts and values are well-conditioned."""
    right = values @ inverse.to(values.dtype)
    return torch.where(reach.is_short, reach.identity.to(values.dtype), right) if any(reach.short) else right


def _in_double(values: Tensor, turn: Tensor, reach: Reach, *, gentle: bool) -> Tensor:
    """W·T by way of double precision; where values are not gentle, without what rounding left of their condition."""
    right = _frame(values, reach) @ turn
    if not gentle:
        right = right @ (1.5 * _eye(turn) - 0.5 * (right.mT @ right))
    return right.to(values.dtype)


def _turn(inverse: Tensor, reach: Reach) -> Tensor:
    """T where everything counts."""
    return torch.where(reach.is_short, _eye(inverse), inverse) if any(reach.short) else inverse


def _less(reach: Reach, gram: Tensor, turn: Tensor, rank: Tensor, lost: Tensor) -> tuple[Tensor, Tensor]:
    """T and the rank where full rank is not proved: only directions that count are left in T."""
    place = lost.flatten().nonzero()[:, 0]
    some, tolerance = gram.flatten(0, -3)[place], reach.tolerance.expand(lost.shape).flatten()[place]
    short = _short(reach, lost.shape)
    short = None if short is None else short[place]
    kept, sure = counting(some, tolerance)
    part, kept = _settled(some, tolerance, short, kept, sure, _solved(some, kept, short))
    found = trace_of(kept).round().long()
    if short is not None:
        count = reach.count.expand(lost.shape).flatten()[place]
        found = torch.where(short, found - some.shape[-1] + count, found)  # without spare places
    turn = turn.flatten(0, -3).index_copy(0, place, part).reshape(gram.shape)
    return turn, rank.flatten().index_copy(0, place, found).reshape(lost.shape)


def _settled(
    gram: Tensor, tolerance: Tensor, short: Tensor | None, kept: Tensor, sure: Tensor, turn: Tensor
) -> tuple[Tensor, Tensor]:
    """T and the projector on what counts, with eigenvectors for the few heads of which it is not sure."""
    few = (~sure).nonzero()[:, 0]
    if not len(few):
        return turn, kept
    exact = by_eigenvectors(gram[few], tolerance[few])
    solved = _solved(gram[few], exact, None if short is None else short[few])
    return turn.index_copy(0, few, solved), kept.index_copy(0, few, exact)


def _solved(gram: Tensor, kept: Tensor, short: Tensor | None) -> Tensor:
    """T from the projector on what counts: that itself for a short text, whose frame is the identity."""
    ordinary = (trace_of(gram) / gram.shape[-1]).clamp(min=TINY)
    inverse, _ = inverse_factor(kept @ gram @ kept + ordinary[:, None, None] * (_eye(gram) - kept))
    return kept @ inverse if short is None else torch.where(short[:, None, None], kept, kept @ inverse)


def _short(reach: Reach, shape: torch.Size) -> Tensor | None:
    """Which heads of so many belong to short texts, one after another; None: none."""
    return reach.is_short[..., 0, 0].expand(shape).flatten() if any(reach.short) else None


def _finite(gram: Tensor) -> bool:
    return bool(torch.isfinite(trace_of(gram)).all())


def _same(attention: Tensor, reach: Reach) -> EffectiveLayer:
    """Nothing is lost."""
    count = reach.count.expand(attention.shape[:2])
    ones = torch.ones(count.shape, device=count.device)
    return EffectiveLayer(attention, diagnostics(count, count, lambda: 0 * ones, lambda: ones))


def _measured(layers: Layers, left: Sequence[Tensor], right: Tensor, rank: Tensor) -> Sequence[EffectiveLayer]:
    """The factors of each layer with their diagnostics."""
    count = layers.reach.count.expand(rank.shape[1:])

    @cache
    def shares() -> Tensor:
        part, whole = (torch.stack([size(each) for each in maps]) for maps in (left, layers.attention))
        return share_of(part, whole, count, rank)  # ‖B·Qᵀ‖ = ‖B‖: QᵀQ is a projector, and B is in its range

    def share(at: int) -> Tensor:
        return shares()[at]

    def residual(at: int) -> Tensor:
        values = layers.values[at]
        target = layers.attention[at] @ values if layers.context is None else layers.context[at]
        return residual_of(left[at], right[at], values, target)

    return [
        EffectiveLayer(
            Factored(left[at], right[at]), diagnostics(count, rank[at], partial(residual, at), partial(share, at))
        )
        for at in range(len(left))
    ]


def _eye(matrix: Tensor) -> Tensor:
    return torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
