"""Attention maps as a classifier sees them: sizes of weights over real tokens, each row adding up to one."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

FEWEST = 4
"""Maps of fewer tokens have no pattern."""

Real = Bool[Tensor, "map token"]
Segments = Int[Tensor, "map token"]


@dataclass(frozen=True)
class Sizes:
    """|w| / Σ|w| of many maps, real tokens first; 0 in padding and in rows without any weight."""

    weights: Float[Tensor, "map token token"]  # map query key
    rows: Bool[Tensor, "map token"]  # queries that have any weight
    counts: Int[Tensor, " map"]  # real tokens
    segments: Segments  # 0 or 1 for the texts of a pair; without meaning in padding

    @property
    def known(self) -> Bool[Tensor, " map"]:
        """The maps that can have a pattern: those of some tokens and any weight."""
        return (self.counts >= FEWEST) & self.rows.any(-1)

    @property
    def there(self) -> Bool[Tensor, "map token"]:
        """The places that hold a real token."""
        return torch.arange(self.rows.shape[1], device=self.rows.device) < self.counts[:, None]


def sizes_of(weights: Float[Tensor, "map token token"], real: Real, segments: Segments | None = None) -> Sizes:
    """Maps of any sign, padded on either side, as sizes with real tokens first.

    >>> row = torch.tensor([3.0, -1.0, 0.0, 0.0])
    >>> sizes_of(row.expand(1, 4, 4), torch.ones(1, 4, dtype=torch.bool)).weights[0, 0].tolist()
    [0.75, 0.25, 0.0, 0.0]
    """
    given = segments if segments is not None else torch.zeros_like(real, dtype=torch.long)
    if (more := FEWEST - real.shape[1]) > 0:  # what follows needs some room
        weights, real, given = (torch.nn.functional.pad(each, (0, more)) for each in (weights, real, given))
        weights = torch.nn.functional.pad(weights, (0, 0, 0, more))
    counts, size = real.sum(-1), weights.abs()
    if weights.is_cuda or not torch.equal(real, torch.arange(real.shape[1]) < counts[:, None]):  # never ask a GPU
        size, given = _gathered(size, given, real)
    if weights.is_cuda or not bool(real.all()):
        there = (torch.arange(real.shape[1], device=real.device) < counts[:, None]).to(size)
        size = size.mul_(there[:, :, None]).mul_(there[:, None])
    whole = size.sum(-1, keepdim=True)
    return Sizes(size.div_(whole.clamp_min(torch.finfo(size.dtype).tiny)), whole[..., 0] > 0, counts, given)


def _gathered(size: Tensor, segments: Tensor, real: Real) -> tuple[Tensor, Tensor]:
    """The same with real tokens first, in their order."""
    order = torch.argsort(~real, dim=-1, stable=True)
    wide = order[:, :, None].expand(-1, -1, order.shape[1])
    return size.gather(1, wide).gather(2, wide.mT), segments.gather(1, order)
