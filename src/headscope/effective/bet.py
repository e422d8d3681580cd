"""Effective attention on a bet that nearly every input wins.

The bet: every query sees all real keys, and the values of every head are proved to have full rank. Then a few products
do, layer by layer, for on a CPU it is copies that cost. Where the bet is lost, the careful way takes over. A GPU has a
way of its own, `core/at_once.py`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat

import torch
from torch import Tensor

from headscope.core.maps import Factored
from headscope.core.trace import Trace
from headscope.effective.diagnostics import EffectiveLayer, diagnostics, residual_of, share_of, size
from headscope.effective.projection import WELL_CONDITIONED, independent, inverse_factor, rank_tolerance


def effective_on_a_bet(trace: Trace) -> Iterator[EffectiveLayer | None]:
    """Effective attention of every layer, or None where the bet cannot be placed or is lost.

    It is placed on float32 layers of one shape.
    """
    assert trace.values is not None
    long = (trace.keys.counts > trace.values[0].shape[-1]).tolist()
    if trace.context is None or not ordinary(trace):
        return repeat(None, len(trace.layers))
    keys = trace.keys.real.to(trace.attention[0].device, non_blocking=True)
    if not bool(all_see(trace, keys)):
        return repeat(None, len(trace.layers))
    road = _long if all(long) else partial(_mixed, long) if any(long) else _short
    values = (each * keys[:, None, :, None] if "pads" in trace.held else each for each in trace.values)
    parts = zip(trace.attention, values, trace.context, strict=True)
    return (road(*each, keys) for each in parts)


def ordinary(trace: Trace) -> bool:
    """Whether all layers are of one shape and in single precision: their maps, their values and what they write."""
    parts = [part for part in (trace.attention, trace.values, trace.context) if part is not None]
    return all(each.dtype == torch.float32 and each.shape == part[0].shape for part in parts for each in part)


def all_see(trace: Trace, keys: Tensor) -> Tensor:
    """Whether every real query sees all real keys, in every layer."""
    wanted = trace.queries.real.to(keys.device, non_blocking=True)[:, :, None] & keys[:, None, :]
    masks = {id(each): each for each in trace.visible}  # layers often share one
    return torch.stack([(each == wanted).all() for each in masks.values()]).all()


def _short(attention: Tensor, values: Tensor, _: Tensor, keys: Tensor) -> EffectiveLayer | None:
    """No more keys than value dimensions: nothing is lost if the values are independent."""
    if not bool(independent(values, keys[:, None].expand(values.shape[:-1])).all()):
        return None
    count = keys.sum(-1)[:, None].expand(values.shape[:2])
    ones = torch.ones(count.shape, device=count.device)
    return EffectiveLayer(attention, diagnostics(count, count, lambda: 0 * ones, lambda: ones))


def _long(attention: Tensor, values: Tensor, context: Tensor, keys: Tensor) -> EffectiveLayer | None:
    """More keys than value dimensions: V = Q·R, and A·Q from the context where that loses nothing."""
    count = keys.sum(-1)[:, None].expand(values.shape[:2])  # batch head
    factors = _factors(attention, values, context, count)
    return None if factors is None else _measured(attention, values, context, count, *factors)


def _mixed(
    long: Sequence[bool], attention: Tensor, values: Tensor, context: Tensor, keys: Tensor
) -> EffectiveLayer | None:
    """Both: each text by its own road."""
    count, value = keys.sum(-1)[:, None].expand(values.shape[:2]), values.shape[-1]
    some = torch.tensor(long, device=values.device)
    seen = keys[~some][:, None].expand(-1, values.shape[1], -1)
    if not bool(independent(values[~some], seen).all()):
        return None
    factors = _factors(attention[some], values[some], context[some], count[some])
    if factors is None:
        return None
    left, right = context.new_zeros(*context.shape[:-1], value), torch.zeros_like(values)
    left[some], right[some] = factors
    for text in (~some).nonzero()[:, 0].tolist():
        at = keys[text].nonzero()[:, 0]
        left[text, ..., : len(at)] = attention[text].index_select(-1, at)  # all of it: right is the identity
        right[text, :, at, torch.arange(len(at), device=at.device)] = 1
    return _measured(attention, values, context, count, left, right)


def _factors(attention: Tensor, values: Tensor, context: Tensor, count: Tensor) -> tuple[Tensor, Tensor] | None:
    """A·Q and Q, if every head is proved to have full rank."""
    wide = values.double()
    inverse, condition = inverse_factor(wide.mT @ wide)
    if not bool((condition * rank_tolerance(count, values.shape[-1]) < 1).all()):
        return None
    if bool((condition <= WELL_CONDITIONED * values.shape[-1]).all()):
        thin = inverse.to(values.dtype)
        return context @ thin, values @ thin
    right = (wide @ inverse).to(values.dtype)
    return attention @ right, right


def _measured(
    attention: Tensor, values: Tensor, context: Tensor, count: Tensor, left: Tensor, right: Tensor
) -> EffectiveLayer:
    """The factors with their diagnostics."""
    rank = count.clamp(max=values.shape[-1])
    share = share_of(size(left), size(attention), count, rank)  # ‖B·Qᵀ‖ = ‖B‖: Q is orthonormal
    residual = partial(residual_of, left, right, values, context)
    return EffectiveLayer(Factored(left, right), diagnostics(count, rank, residual, lambda: share))
