"""Effective attention of all heads at once, of texts of any length and values of any rank.

It is for GPUs, where a question of the host costs more than its answer, and eigenvectors more than the model. What
values span, and how, is in `core/span.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from headscope.core.maps import Factored
from headscope.effective.diagnostics import EffectiveLayer, diagnostics, residual_of, share_of, size
from headscope.effective.projection import sized_inverse_factor
from headscope.effective.reach import Reach
from headscope.effective.span import Fewer, eye_like, frame_of, gram_of, rough, spread_of, turn_of
from headscope.effective.spectral import trace_of

SPARE = 4
"""Heads for every text of exactly d tokens that may lack a direction: square values are sometimes nearly singular."""

HEAVY = 2e10
"""Numbers in the values, times those that each was made of: from here on a GPU is behind its host, which then does
better to foresee an answer than to wait for it. Lighter models wait for the host, which should not have more to do."""


@dataclass(frozen=True)
class Layers:
    """Layers of one shape, in which every real query of a text sees the same keys."""

    attention: Sequence[Tensor]  # each batch head query key, float32
    values: Tensor  # layer batch head key value, zero where no query looks
    context: Tensor | None  # layer batch head query value: A·V, where it is known already
    reach: Reach


def effective_at_once(layers: Layers, fits: Tensor | None = None) -> Sequence[EffectiveLayer] | None:
    """The effective attention of every layer, or None where values are not finite or `fits`, asked along, is false.

    The host waits once, and three times more where values of some head are not proved to have full rank, unless that
    was foreseen.
    """
    reach, wide = layers.reach, layers.values.double()
    gram = gram_of(wide, reach)
    inverse, condition, length = sized_inverse_factor(gram)
    bound = condition * reach.tolerance  # below 1 rank is full
    heavy = wide.numel() * wide.shape[-3] * wide.shape[-1] >= HEAVY
    if heavy and reach.value in reach.counts:
        found = _foreseen(layers, fits, wide, gram, inverse, bound)
        if found is not None:
            return found
    asked = [bound.amax(), spread_of(condition, reach), length.amin(), *([] if fits is None else [fits.double()])]
    worst, spread, least, *fit = torch.stack(asked).tolist()  # the one question; NaN is below nothing
    if 0.0 in fit:
        return None
    if worst < 1 and all(reach.short):
        return [_same(each, reach) for each in layers.attention]
    rank = _full(reach, bound)
    gentle = not rough(spread, least, reach.value)
    if worst < 1 and gentle:
        return _gently(layers, inverse, rank)
    if not worst < 1 and not bool(torch.isfinite(trace_of(gram)).all()):
        return None
    turn = turn_of(inverse, reach)
    if not worst < 1:
        fewer = Fewer.of(gram, reach, (~(bound < 1)).flatten().nonzero()[:, 0]).settled()
        turn, rank = fewer.turned(turn), fewer.ranked(rank, reach)
    return _measured(layers, _in_double(wide, turn, reach, gentle=gentle), rank)


def _foreseen(
    layers: Layers, fits: Tensor | None, wide: Tensor, gram: Tensor, inverse: Tensor, bound: Tensor
) -> Sequence[EffectiveLayer] | None:
    """All layers where a few heads may lack a direction, asked at the end; None where it is not so or not enough."""
    reach = layers.reach
    most = min(SPARE * reach.counts.count(reach.value), bound.numel())
    fewer = Fewer.of(gram, reach, bound.flatten().topk(most).indices)
    right = _in_double(wide, fewer.turned(turn_of(inverse, reach)), reach, gentle=False)
    found = _measured(layers, right, fewer.ranked(_full(reach, bound), reach))
    asked = [(~(bound < 1)).sum() <= most, fewer.sure.all(), *([] if fits is None else [fits])]
    return found if bool(torch.stack(asked).all()) else None


def _gently(layers: Layers, inverse: Tensor, rank: Tensor) -> Sequence[EffectiveLayer]:
    """In single precision, which will do where everything counts and values are well-conditioned."""
    reach, thin = layers.reach, inverse.to(layers.values.dtype)
    right = layers.values @ thin
    if any(reach.short):
        return _measured(layers, torch.where(reach.is_short, reach.places.identity, right), rank)
    return _measured(layers, right, rank, left=None if layers.context is None else list(layers.context @ thin))


def _in_double(wide: Tensor, turn: Tensor, reach: Reach, *, gentle: bool) -> Tensor:
    """W·T by way of double precision; where values are not gentle, without what rounding left of their condition."""
    right = frame_of(wide, reach) @ turn
    if not gentle:
        right = right @ (1.5 * eye_like(turn) - 0.5 * (right.mT @ right))
    return right.float()


def _full(reach: Reach, bound: Tensor) -> Tensor:
    """The rank of all heads where it is full."""
    return reach.count.clamp(max=reach.value).expand(bound.shape)


def _same(attention: Tensor, reach: Reach) -> EffectiveLayer:
    """Nothing is lost."""
    count = reach.count.expand(attention.shape[:2])
    ones = torch.ones(count.shape, device=count.device)
    return EffectiveLayer(attention, diagnostics(count, count, lambda: 0 * ones, lambda: ones))


def _measured(
    layers: Layers, right: Tensor, rank: Tensor, left: Sequence[Tensor] | None = None
) -> Sequence[EffectiveLayer]:
    """The factors of each layer with their diagnostics; left ones are A times right ones, unless they are known."""
    left = left or [each @ part for each, part in zip(layers.attention, right, strict=True)]
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
