"""Cosine similarity and rank correlation of two attention maps, over the cells where a query sees a key."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.trace import Visible


def cosine_similarity(
    left: Float[Tensor, "batch #head query key"], right: Float[Tensor, "batch #head query key"], visible: Visible
) -> Float[Tensor, "batch _"]:
    """Return the cosine of the flattened maps of each head; NaN where one of them is 0."""
    mask = visible[:, None].to(left.dtype)
    left, right = left * mask, right * mask
    return (_dot(left, right) / (_dot(left, left) * _dot(right, right)).sqrt_()).clamp_(-1, 1)


def rank_correlation(
    left: Float[Tensor, "batch #head query key"], right: Float[Tensor, "batch #head query key"], visible: Visible
) -> Float[Tensor, "batch _"]:
    """Return Spearman's rank correlation of the maps of each head; NaN where one of them is constant."""
    chunks = 1 if left.is_cuda else max(1, len(left))  # on a CPU one example at a time, so that its ranks fit the cache
    heads = max(left.shape[1], right.shape[1])
    tables = (left.expand(-1, heads, -1, -1), right.expand(-1, heads, -1, -1), visible)
    parts = zip(*(table.chunk(chunks) for table in tables), strict=True)
    return torch.cat([_correlate_ranks(*part, same=right is left) for part in parts])


def _correlate_ranks(left: Tensor, right: Tensor, visible: Tensor, *, same: bool) -> Tensor:
    mask = visible[:, None].flatten(2)
    mean = (mask.sum(-1, keepdim=True) - 1) / 2
    x = (rank_cells(left.flatten(2), mask) - mean).mul_(mask)
    y = x if same else (rank_cells(right.flatten(2), mask) - mean).mul_(mask)
    covariance, x_square, y_square = ((a * b).sum(-1) for a, b in ((x, y), (x, x), (y, y)))
    return covariance / (x_square * y_square).sqrt_()


def rank_cells(values: Float[Tensor, "*axes cell"], mask: Bool[Tensor, "*#axes cell"]) -> Float[Tensor, "*axes cell"]:
    """Return the rank of each value where the mask is true, from 0, ties at their average rank.

    >>> rank_cells(torch.tensor([3.0, 1.0, 3.0, 9.0]), torch.tensor([True, True, True, False])).tolist()[:3]
    [1.5, 0.0, 1.5]
    """
    ordered, order = _sort(values.masked_fill(~mask, torch.inf))  # masked cells come last
    position = torch.arange(values.shape[-1], device=values.device)
    edge = torch.ones_like(order[..., :1], dtype=torch.bool)
    change = ordered[..., 1:] != ordered[..., :-1]
    first = torch.where(torch.cat([edge, change], -1), position, 0).cummax(-1).values
    last = torch.where(torch.cat([change, edge], -1), position, len(position)).flip(-1).cummin(-1).values.flip(-1)
    average = (first + last).double().div_(2)
    return torch.empty_like(average).scatter_(-1, order, average)


def _sort(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sorted values, or integers of the same order, and the indices that sort them.

    On a CPU, numpy sorts integers several times as fast as torch sorts values with indices. So value and index are
    packed into one integer: the bits of a positive float are ordered as integers; those of a negative one are inverted.
    """
    if values.is_cuda or values.dtype != torch.float32:
        return values.sort(-1)
    bits = (values + 0.0).view(torch.int32)  # turns -0 into 0
    ordinal = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()
    packed = np.sort(((ordinal << 32) | torch.arange(values.shape[-1])).numpy(), -1)
    return torch.from_numpy(packed >> 32), torch.from_numpy(packed & 0xFFFFFFFF)


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Sum rows in the precision of the maps, and these sums in float64."""
    return (left * right).sum(-1).double().sum(-1)
