"""Cosine similarity and rank correlation of two attention maps, over the cells where a query sees a key."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.trace import Visible

Array = np.ndarray[Any, np.dtype[Any]]
INFINITE = 0x7F800000
"""The bits of an infinite float32."""


def cosine_similarity(
    left: Float[Tensor, "batch #head query key"], right: Float[Tensor, "batch #head query key"], visible: Visible
) -> Float[Tensor, "batch _"]:
    """Return the cosine of the flattened maps of each head; NaN where one of them is 0."""
    left, right = (torch.where(visible[:, None], table, table.new_zeros(())) for table in (left, right))
    return (_dot(left, right) / (_dot(left, left) * _dot(right, right)).sqrt_()).clamp_(-1, 1)


def rank_correlation(
    left: Float[Tensor, "batch #head query key"], right: Float[Tensor, "batch #head query key"], visible: Visible
) -> Float[Tensor, "batch _"]:
    """Return Spearman's rank correlation of the maps of each head; NaN where one of them is constant."""
    chunks = 1 if left.is_cuda else max(1, len(left))  # on a CPU one example at a time, so that its ranks fit the cache
    heads = max(left.shape[1], right.shape[1])
    tables = (left.expand(-1, heads, -1, -1), right.expand(-1, heads, -1, -1), visible)
    chunk_pairs = zip(*(table.chunk(chunks) for table in tables), strict=True)
    return torch.cat([_correlate_ranks(*pair, same=right is left) for pair in chunk_pairs])


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
    values = values.masked_fill(~mask, torch.inf)  # masked cells come last
    if not values.is_cuda and values.dtype == torch.float32:
        return torch.from_numpy(_rank_on_cpu(values.numpy()))
    ordered, order = values.sort(-1)
    position = torch.arange(values.shape[-1], device=values.device)
    edge = torch.ones_like(order[..., :1], dtype=torch.bool)
    change = ordered[..., 1:] != ordered[..., :-1]
    first = torch.where(torch.cat([edge, change], -1), position, 0).cummax(-1).values
    last = torch.where(torch.cat([change, edge], -1), position, len(position)).flip(-1).cummin(-1).values.flip(-1)
    average = (first + last).double().div_(2)
    return torch.empty_like(average).scatter_(-1, order, average)


def _rank_on_cpu(values: Array) -> Array:
    """Return the ranks along the last axis; infinite values, which are masked, have any.

    In numpy, so in one thread: these steps are too short for several threads, which would wait for one another most of
    the time. Value and index are packed into one integer, because integers are sorted several times as fast as values
    with their indices: the bits of a positive float are ordered as integers; those of a negative one are inverted.
    """
    bits = (values + np.float32(0)).view(np.int32)  # turns -0 into 0
    packed = ((bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) << 32) | np.arange(values.shape[-1])
    packed.sort(-1)
    order, ordered = packed & 0xFFFFFFFF, packed >> 32
    average = np.broadcast_to(np.arange(values.shape[-1], dtype=np.float64), order.shape).copy()
    tied = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != INFINITE)
    rows = tied.any(-1)
    if rows.any():
        average[rows] = _average_ties(tied[rows])
    ranks = np.empty(order.shape)
    np.put_along_axis(ranks, order, average, -1)
    return ranks


def _average_ties(tied: Array) -> Array:
    """Return the mean position of each run of equal values, from whether each equals the one before it."""
    edge, position = np.zeros_like(tied[..., :1]), np.arange(tied.shape[-1] + 1)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, tied], -1), 0, position), -1)
    after = np.where(np.concatenate([tied, edge], -1), len(position), position)[..., ::-1]
    return (first + np.minimum.accumulate(after, -1)[..., ::-1]) / 2


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Sum rows in the precision of the maps, and these sums in float64."""
    return (left * right).sum(-1).double().sum(-1)
