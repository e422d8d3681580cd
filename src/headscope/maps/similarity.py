"""How alike two maps are, over the cells that count."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.trace import Visible


def cosine(
    left: Float[Tensor, "batch #head query key"], right: Float[Tensor, "batch #head query key"], visible: Visible
) -> Float[Tensor, "batch _"]:
    """The cosine of two maps of a head, each laid out as one vector; NaN where one of them is 0."""
    seen = visible[:, None].to(left.dtype)
    left, right = left * seen, right * seen
    return (_dot(left, right) / (_dot(left, left) * _dot(right, right)).sqrt_()).clamp_(-1, 1)


def spearman(
    left: Float[Tensor, "batch #head query key"], right: Float[Tensor, "batch #head query key"], visible: Visible
) -> Float[Tensor, "batch _"]:
    """Spearman's rank correlation of two maps of a head, ties at their average rank; NaN where one is constant."""
    many = 1 if left.is_cuda else max(1, len(left))  # one after another, so that all ranks of one stay in a CPU's cache
    heads = max(left.shape[1], right.shape[1])
    maps = (each.expand(-1, heads, -1, -1) for each in (left, right))
    parts = zip(*(each.chunk(many) for each in (*maps, visible)), strict=True)
    return torch.cat([_correlation(*part, same=right is left) for part in parts])


def _correlation(left: Tensor, right: Tensor, visible: Tensor, *, same: bool) -> Tensor:
    there = visible[:, None].flatten(2)
    middle = (there.sum(-1, keepdim=True) - 1) / 2
    mine = (ranks(left.flatten(2), there) - middle).mul_(there)
    theirs = mine if same else (ranks(right.flatten(2), there) - middle).mul_(there)
    both, first, second = ((a * b).sum(-1) for a, b in ((mine, theirs), (mine, mine), (theirs, theirs)))
    return both / (first * second).sqrt_()


def ranks(values: Float[Tensor, "*axes cell"], there: Bool[Tensor, "*#axes cell"]) -> Float[Tensor, "*axes cell"]:
    """The rank of each value among those that are there, counted from 0 in float64, ties at their average.

    >>> ranks(torch.tensor([3.0, 1.0, 3.0, 9.0]), torch.tensor([True, True, True, False])).tolist()[:3]
    [1.5, 0.0, 1.5]
    """
    ordered, order = _sorted(values.masked_fill(~there, torch.inf))  # what is not there comes last
    place = torch.arange(values.shape[-1], device=values.device)
    edge = torch.ones_like(order[..., :1], dtype=torch.bool)
    change = ordered[..., 1:] != ordered[..., :-1]
    first = torch.where(torch.cat([edge, change], -1), place, 0).cummax(-1).values
    last = torch.where(torch.cat([change, edge], -1), place, len(place)).flip(-1).cummin(-1).values.flip(-1)
    average = (first + last).double().div_(2)
    return torch.empty_like(average).scatter_(-1, order, average)


def _sorted(values: Tensor) -> tuple[Tensor, Tensor]:
    """Values in order, or whole numbers of the same order, and where each stood.

    On a CPU, numpy sorts whole numbers several times as fast as torch does values with their places. So value and place
    are made one number: the bits of a float count upwards, but for those of negative ones, which are turned around.
    """
    if values.is_cuda or values.dtype != torch.float32:
        return values.sort(-1)
    bits = (values + 0.0).view(torch.int32)  # -0 is 0
    whole = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()
    ordered = np.sort(((whole << 32) | torch.arange(values.shape[-1])).numpy(), -1)
    return torch.from_numpy(ordered >> 32), torch.from_numpy(ordered & 0xFFFFFFFF)


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Rows in the maps' own precision, their sum in float64."""
    return (left * right).sum(-1).double().sum(-1)
