"""How alike two maps are, over the cells that count."""

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
    there = visible[:, None].flatten(2)
    count = there.sum(-1, keepdim=True)
    centred = [(ranks(each.flatten(2), there) - (count - 1) / 2).mul_(there) for each in (left, right)]
    both, first, second = ((a * b).sum(-1) for a, b in (centred, centred[:1] * 2, centred[1:] * 2))
    return both / (first * second).sqrt_()


def ranks(values: Float[Tensor, "*axes cell"], there: Bool[Tensor, "*#axes cell"]) -> Float[Tensor, "*axes cell"]:
    """The rank of each value among those that are there, counted from 0 in float64, ties at their average.

    >>> ranks(torch.tensor([3.0, 1.0, 3.0, 9.0]), torch.tensor([True, True, True, False])).tolist()[:3]
    [1.5, 0.0, 1.5]
    """
    ordered, order = values.masked_fill(~there, torch.inf).sort(-1)  # what is not there comes last
    place = torch.arange(values.shape[-1], device=values.device)
    edge = torch.ones_like(order[..., :1], dtype=torch.bool)
    change = ordered[..., 1:] != ordered[..., :-1]
    first = torch.where(torch.cat([edge, change], -1), place, 0).cummax(-1).values
    last = torch.where(torch.cat([change, edge], -1), place, len(place)).flip(-1).cummin(-1).values.flip(-1)
    average = (first + last).double().div_(2)
    return torch.empty_like(average).scatter_(-1, order, average)


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Rows in the maps' own precision, their sum in float64."""
    return (left * right).sum(-1).double().sum(-1)
