"""Maps of any size as images of one size, in which thin lines survive.

A pixel covers a whole number of cells, or the nearest cell where a map is smaller than the image. Channels: the mean of
its cells relative to the uniform weight, the maximum of its cells, the column and the offset profile spread over the
map, and whether query and key belong to the same text of a pair.
"""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.patterns.classify.normalize import NormalizedMaps
from headscope.patterns.classify.profiles import Profiles, compute_profiles

Bounds = Int[Tensor, "map side"]
CHANNELS = ("mean", "max", "columns", "offsets", "same_text")


def resize_maps(
    maps: NormalizedMaps, side: int, profiles: Profiles | None = None
) -> Float[Tensor, "map channel side side"]:
    """Resize every map to `side` × `side` pixels; all channels lie between 0 and about 1."""
    profiles = profiles if profiles is not None else compute_profiles(maps)
    start, stop = pixel_bounds(maps.counts, side)
    mean = _mean_pool(maps.weights, start, stop) * maps.counts[:, None, None]
    columns = max_pool_rows(profiles.columns[..., None], start, stop)[..., 0]
    second = max_pool_rows((maps.segments == 1).to(mean)[..., None], start, stop)[..., 0]
    channels = [
        mean.log1p() / log(1 + side),
        max_pool_rows(max_pool_rows(maps.weights, start, stop).mT.contiguous(), start, stop).mT.sqrt(),
        columns.sqrt()[:, None].expand_as(mean),
        _spread_offsets(profiles.offsets, maps.counts, side).sqrt(),
        (second[:, :, None] == second[:, None]).to(mean),
    ]
    return torch.stack(channels, dim=1)


def pixel_bounds(counts: Int[Tensor, " map"], side: int) -> tuple[Bounds, Bounds]:
    """Return the first token of every pixel, and the one after its last.

    >>> [bound.tolist() for bound in pixel_bounds(torch.tensor([6, 2]), 4)]
    [[[0, 1, 3, 4], [0, 0, 1, 1]], [[1, 3, 4, 6], [1, 1, 2, 2]]]
    """
    edges = torch.arange(side + 1, device=counts.device) * counts[:, None] // side
    return edges[:, :-1], torch.maximum(edges[:, 1:], edges[:, :-1] + 1)


def max_pool_rows(
    cells: Float[Tensor, "map token more"], start: Bounds, stop: Bounds
) -> Float[Tensor, "map side more"]:
    """Return the maximum over the rows of every pixel."""
    count, width, more = cells.shape
    rows, first = cells.reshape(-1, more), width * torch.arange(count, device=cells.device)[:, None]
    pooled = rows.index_select(0, (first + start).flatten())  # whole rows at once
    for step in range(1, -(-width // start.shape[1])):
        index = first + torch.minimum(start + step, stop - 1)
        pooled = torch.maximum(pooled, rows.index_select(0, index.flatten()))
    return pooled.view(count, -1, more)


def _mean_pool(
    weights: Float[Tensor, "map token token"], start: Bounds, stop: Bounds
) -> Float[Tensor, "map side side"]:
    token = torch.arange(weights.shape[1], device=weights.device)
    inside = (token >= start[..., None]) & (token < stop[..., None])
    share = inside.to(weights) / (stop - start)[..., None]  # map side token
    return share @ weights @ share.mT


def _spread_offsets(
    offsets: Float[Tensor, "map offset"], counts: Int[Tensor, " map"], side: int
) -> Float[Tensor, "map side side"]:
    """Give every pixel the maximum of the offsets nearest to its centre."""
    width, counts = (offsets.shape[1] + 1) // 2, counts[:, None]
    distance = torch.arange(1 - side, side, device=offsets.device)  # in pixels, from query to key
    low, high = (-(-(2 * distance + end) * counts // (2 * side)) for end in (-1, 1))  # rounded up
    start = torch.where(high > low, low, (2 * distance * counts + side) // (2 * side))
    stop, last = torch.maximum(high, start + 1), counts - 1
    spread = offsets.new_zeros(start.shape)
    for step in range(-(-width // side) + 1):
        offset = torch.minimum(start + step, stop - 1)
        offset = torch.minimum(torch.maximum(offset, -last), last)
        spread = torch.maximum(spread, offsets.gather(1, offset + width - 1))
    pixel = torch.arange(side, device=offsets.device)
    return spread[:, pixel - pixel[:, None] + side - 1]
