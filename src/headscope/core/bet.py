"""Effective attention on a bet that nearly every input wins.

The bet: every query sees all real keys, and the values of every head are proved to have full rank. Then a few products
do. Whether it is won is found where the data lies, and asked of it once: on a GPU for all layers together, for there a
question costs more than its answer; elsewhere layer by layer, for there it is the copies that cost. Where the bet is
lost, the careful way takes over.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat

import torch
from torch import Tensor

from headscope.core.diagnostics import EffectiveLayer, diagnostics, ratio, residual_of, size
from headscope.core.maps import Factored
from headscope.core.projection import WELL_CONDITIONED, independent, inverse_factor, rank_tolerance
from headscope.core.trace import Trace


def effective_on_a_bet(trace: Trace, *, together: bool) -> Iterator[EffectiveLayer | None]:
    """Effective attention of every layer, or None where the bet cannot be placed or is lost.

    It is placed on float32 layers of one shape whose texts are all longer than the value dimension, or all not.
    """
    assert trace.values is not None
    attention, value = trace.attention[0], trace.values[0].shape[-1]
    alike = all(each.shape == attention.shape for each in trace.attention)
    long = (trace.keys.counts > value).tolist()  # tokens lie with the host
    if trace.context is None or attention.dtype != torch.float32 or not alike or (any(long) and not all(long)):
        return repeat(None, len(trace.layers))
    keys = trace.keys.real.to(attention.device, non_blocking=True)
    seen = _all_see(trace, keys)
    if not together and not bool(seen):
        return repeat(None, len(trace.layers))
    road = _long if all(long) else _short
    step = len(trace.layers) if together else 1
    groups = (slice(start, start + step) for start in range(0, len(trace.layers), step))
    return (layer for group in groups for layer in road(trace, group, keys, seen))


def _short(trace: Trace, group: slice, keys: Tensor, seen: Tensor) -> Sequence[EffectiveLayer | None]:
    """No more keys than value dimensions: nothing is lost if the values are independent."""
    values, attention = _values(trace, group, keys), trace.attention[group]
    proved = independent(values, keys[:, None].expand(values.shape[:-1])).all()
    if not bool(proved & seen):
        return [None] * len(attention)
    count = keys.sum(-1)[:, None].expand(values.shape[1:3])
    ones = torch.ones(count.shape, device=count.device)
    table = diagnostics(count, count, lambda: 0 * ones, ones)
    return [EffectiveLayer(each, table) for each in attention]


def _long(trace: Trace, group: slice, keys: Tensor, seen: Tensor) -> Sequence[EffectiveLayer | None]:
    """More keys than value dimensions: V = Q·R, and A·Q from the context where that loses nothing."""
    assert trace.context is not None
    values, attention = _values(trace, group, keys), trace.attention[group]
    count = keys.sum(-1)[:, None].expand(values.shape[1:3])  # batch head
    wide = values.double()
    inverse, condition = inverse_factor(wide.mT @ wide)
    full = (condition * rank_tolerance(count, values.shape[-1]) < 1).all()
    well = (condition <= WELL_CONDITIONED * values.shape[-1]).all()
    safe, near = torch.stack([full & seen, well]).tolist()  # the one question
    if not safe:
        return [None] * len(attention)
    context = _stacked(trace.context[group])
    if near:
        thin = inverse.to(values.dtype)
        right, left = values @ thin, context @ thin
    else:
        right = (wide @ inverse).to(values.dtype)
        left = _stacked([each @ basis for each, basis in zip(attention, right, strict=True)])
    share = ratio(size(left), _stacked([size(each) for each in attention]))  # ‖B·Qᵀ‖ = ‖B‖: Q is orthonormal
    rank = torch.full_like(count, values.shape[-1])
    residuals = (partial(residual_of, *parts) for parts in zip(left, right, values, context, strict=True))
    tables = [diagnostics(count, rank, *pair) for pair in zip(residuals, share, strict=True)]
    factors = [Factored(*pair) for pair in zip(left, right, strict=True)]
    return [EffectiveLayer(part, table) for part, table in zip(factors, tables, strict=True)]


def _values(trace: Trace, group: slice, keys: Tensor) -> Tensor:
    """The values of some layers, layer batch head key value, without those of padding."""
    assert trace.values is not None
    values = _stacked(trace.values[group])
    return values * keys[:, None, :, None] if "pads" in trace.held else values


def _stacked(parts: Sequence[Tensor]) -> Tensor:
    """All in one tensor; a single one is not copied."""
    return torch.stack(list(parts)) if len(parts) > 1 else parts[0][None]


def _all_see(trace: Trace, keys: Tensor) -> Tensor:
    """Whether every real query sees all real keys, in every layer."""
    wanted = trace.queries.real.to(keys.device, non_blocking=True)[:, :, None] & keys[:, None, :]
    masks = {id(each): each for each in trace.visible}  # layers often share one
    return torch.stack([(each == wanted).all() for each in masks.values()]).all()
