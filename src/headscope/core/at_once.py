"""Effective attention of all layers in one go, for machines that are slow to ask and quick to compute.

On a GPU every question of the host costs more than the answer. So all layers are projected together on a bet: that
every query sees all real keys, and that the values of every head are proved to have full rank. Both are checked where
the data lies, the host asks once, and where the bet is lost the careful way takes over.
"""

import torch
from torch import Tensor

from headscope.core.diagnostics import EffectiveLayer, diagnostics, ratio, residual_of, size
from headscope.core.maps import Factored
from headscope.core.projection import WELL_CONDITIONED, independent, inverse_factor, rank_tolerance
from headscope.core.trace import Trace


def effective_at_once(trace: Trace) -> list[EffectiveLayer] | None:
    """Effective attention of every layer, or None where the bet cannot be placed or is lost.

    It is placed on float32 layers of one shape whose texts are all longer than the value dimension, or all not.
    """
    assert trace.values is not None
    attention, value = trace.attention[0], trace.values[0].shape[-1]
    alike = all(each.shape == attention.shape for each in trace.attention)
    long = (trace.keys.counts > value).tolist()  # tokens lie with the host
    if trace.context is None or attention.dtype != torch.float32 or not alike or (any(long) and not all(long)):
        return None
    values = torch.stack(list(trace.values))  # layer batch head key value
    keys = trace.keys.real.to(attention.device, non_blocking=True)
    if "pads" in trace.held:
        values = values * keys[:, None, :, None]
    return _long(trace, values, keys) if all(long) else _short(trace, values, keys)


def _short(trace: Trace, values: Tensor, keys: Tensor) -> list[EffectiveLayer] | None:
    """No more keys than value dimensions: nothing is lost if the values are independent."""
    proved = independent(values, keys[:, None].expand(values.shape[:-1])).all()
    if not bool(proved & _all_see(trace, keys)):
        return None
    count = keys.sum(-1)[:, None].expand(values.shape[1:3])
    ones = torch.ones(count.shape, device=count.device)
    table = diagnostics(count, count, 0 * ones, ones)
    return [EffectiveLayer(each, table) for each in trace.attention]


def _long(trace: Trace, values: Tensor, keys: Tensor) -> list[EffectiveLayer] | None:
    """More keys than value dimensions: V = Q·R for all layers, and A·Q from the context where that loses nothing."""
    assert trace.context is not None
    count = keys.sum(-1)[:, None].expand(values.shape[1:3])  # batch head
    wide = values.double()
    inverse, condition = inverse_factor(wide.mT @ wide)
    full = (condition * rank_tolerance(count, values.shape[-1]) < 1).all()
    well = (condition <= WELL_CONDITIONED * values.shape[-1]).all()
    safe, near = torch.stack([full & _all_see(trace, keys), well]).tolist()  # the one question
    if not safe:
        return None
    context = torch.stack(list(trace.context))
    if near:
        thin = inverse.to(values.dtype)
        right, left = values @ thin, context @ thin
        residual, length = _from_gram(context.mT @ context, thin, right.mT @ values)
    else:
        right = (wide @ inverse).to(values.dtype)
        left = torch.stack([each @ basis for each, basis in zip(trace.attention, right, strict=True)])
        residual, length = residual_of(left, right, values, context), size(left)
    share = ratio(length, torch.stack([size(each) for each in trace.attention]))
    rank = torch.full_like(count, values.shape[-1])
    tables = [diagnostics(count, rank, *pair) for pair in zip(residual, share, strict=True)]
    factors = [Factored(*pair) for pair in zip(left, right, strict=True)]
    return [EffectiveLayer(part, table) for part, table in zip(factors, tables, strict=True)]


def _from_gram(gram: Tensor, thin: Tensor, cross: Tensor) -> tuple[Tensor, Tensor]:
    """The residual and ‖B‖ where B = Z·T, from ZᵀZ, T and QᵀV alone: no pass over anything that grows with the text.

    B·QᵀV − Z = Z·(T·QᵀV − 1), and ‖Z·X‖² is the trace of Xᵀ(ZᵀZ)X.
    """
    one = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    drift, length, whole = (
        (each * (gram @ each)).sum((-1, -2)).clamp(min=0).sqrt() for each in (thin @ cross - one, thin, one)
    )
    return ratio(drift, whole), length


def _all_see(trace: Trace, keys: Tensor) -> Tensor:
    """Whether every real query sees all real keys, in every layer."""
    wanted = trace.queries.real.to(keys.device, non_blocking=True)[:, :, None] & keys[:, None, :]
    masks = {id(each): each for each in trace.visible}  # layers often share one
    return torch.stack([(each == wanted).all() for each in masks.values()]).all()
