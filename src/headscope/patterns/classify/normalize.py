"""Absolute, row-normalised attention weights, the input of all pattern classifiers."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

MIN_TOKENS = 4
"""Maps of fewer tokens have no pattern."""

Real = Bool[Tensor, "map token"]
Segments = Int[Tensor, "map token"]


@dataclass(frozen=True)
class NormalizedMaps:
    """|w| / Σ|w| of a batch of maps, real tokens first; 0 in padding and in rows without weight."""

    weights: Float[Tensor, "map token token"]  # map query key
    nonzero_rows: Bool[Tensor, "map token"]  # queries with any weight
    counts: Int[Tensor, " map"]  # real tokens
    segments: Segments  # 0 or 1 for the texts of a pair; undefined in padding

    @property
    def valid(self) -> Bool[Tensor, " map"]:
        """Which maps can have a pattern: those with enough tokens and any weight."""
        return (self.counts >= MIN_TOKENS) & self.nonzero_rows.any(-1)

    @property
    def real(self) -> Bool[Tensor, "map token"]:
        """Which positions hold a real token."""
        return torch.arange(self.nonzero_rows.shape[1], device=self.counts.device) < self.counts[:, None]


def normalize_maps(
    weights: Float[Tensor, "map token token"], real: Real, segments: Segments | None = None
) -> NormalizedMaps:
    """Normalise maps of any sign, with padding on either side.

    >>> row = torch.tensor([3.0, -1.0, 0.0, 0.0])
    >>> normalize_maps(row.expand(1, 4, 4), torch.ones(1, 4, dtype=torch.bool)).weights[0, 0].tolist()
    [0.75, 0.25, 0.0, 0.0]
    """
    segments = segments if segments is not None else torch.zeros_like(real, dtype=torch.long)
    if (missing := MIN_TOKENS - real.shape[1]) > 0:  # the scores need at least this width
        weights = pad(weights, (0, missing, 0, missing))
        real, segments = (pad(tensor, (0, missing)) for tensor in (real, segments))
    counts, absolute = real.sum(-1), weights.abs()
    left_aligned = torch.arange(real.shape[1], device=real.device) < counts[:, None]
    if weights.is_cuda or not torch.equal(real, left_aligned):  # a comparison would make the host wait for a GPU
        order = torch.argsort(~real, dim=-1, stable=True)  # real tokens first
        index = order[:, :, None].expand(-1, -1, order.shape[1])
        absolute, segments = absolute.gather(1, index).gather(2, index.mT), segments.gather(1, order)
    if weights.is_cuda or not bool(real.all()):
        mask = left_aligned.to(absolute)
        absolute = absolute.mul_(mask[:, :, None]).mul_(mask[:, None])
    total = absolute.sum(-1, keepdim=True)
    normalized = absolute.div_(total.clamp_min(torch.finfo(absolute.dtype).tiny))
    return NormalizedMaps(normalized, total[..., 0] > 0, counts, segments)
