"""Maps of any size as pictures of one size, in which thin lines survive.

A pixel is a whole number of cells, or where a map is smaller than the picture, the nearest cell. Channels: the mean of
its cells against an even share, the largest of its cells, the columns' and the offsets' profile laid back over the map,
and how far query and key are of the same text of a pair.
"""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.patterns.classify.profiles import Profiles, profiles_of
from headscope.patterns.classify.row_weights import Sizes

CHANNELS = ("mean", "largest", "columns", "offsets", "same_text")


def pictures(sizes: Sizes, side: int, profiles: Profiles | None = None) -> Float[Tensor, "map channel side side"]:
    """Every map as a picture of `side` pixels a side; all channels from 0 to about 1."""
    held = profiles if profiles is not None else profiles_of(sizes)
    start, stop = pixels(sizes.counts, side)
    mean = _means(sizes.weights, start, stop) * sizes.counts[:, None, None]
    columns = largest(held.columns[..., None], start, stop)[..., 0]
    second = largest((sizes.segments == 1).to(mean)[..., None], start, stop)[..., 0]
    channels = [
        mean.log1p() / log(1 + side),
        largest(largest(sizes.weights, start, stop).mT.contiguous(), start, stop).mT.sqrt(),
        columns.sqrt()[:, None].expand_as(mean),
        _laid_back(held.offsets, sizes.counts, side).sqrt(),
        (second[:, :, None] == second[:, None]).to(mean),
    ]
    return torch.stack(channels, dim=1)


def pixels(counts: Int[Tensor, " map"], side: int) -> tuple[Int[Tensor, "map side"], Int[Tensor, "map side"]]:
    """The first token of every pixel, and the one after its last.

    >>> [each.tolist() for each in pixels(torch.tensor([6, 2]), 4)]
    [[[0, 1, 3, 4], [0, 0, 1, 1]], [[1, 3, 4, 6], [1, 1, 2, 2]]]
    """
    edges = torch.arange(side + 1, device=counts.device) * counts[:, None] // side
    return edges[:, :-1], torch.maximum(edges[:, 1:], edges[:, :-1] + 1)


def largest(
    cells: Float[Tensor, "map token more"], start: Int[Tensor, "map side"], stop: Int[Tensor, "map side"]
) -> Float[Tensor, "map side more"]:
    """The largest of the rows of every pixel."""
    many, wide, more = cells.shape
    rows, first = cells.reshape(-1, more), wide * torch.arange(many, device=cells.device)[:, None]
    found = rows.index_select(0, (first + start).flatten())  # whole rows at once
    for further in range(1, -(-wide // start.shape[1])):
        place = first + torch.minimum(start + further, stop - 1)
        found = torch.maximum(found, rows.index_select(0, place.flatten()))
    return found.view(many, -1, more)


def _means(
    weights: Float[Tensor, "map token token"], start: Int[Tensor, "map side"], stop: Int[Tensor, "map side"]
) -> Float[Tensor, "map side side"]:
    token = torch.arange(weights.shape[1], device=weights.device)
    inside = (token >= start[..., None]) & (token < stop[..., None])
    share = inside.to(weights) / (stop - start)[..., None]  # map side token
    return share @ weights @ share.mT


def _laid_back(
    offsets: Float[Tensor, "map offset"], counts: Int[Tensor, " map"], side: int
) -> Float[Tensor, "map side side"]:
    """For every pixel the largest share of the offsets that its middle is nearest to."""
    wide = (offsets.shape[1] + 1) // 2
    apart = torch.arange(1 - side, side, device=offsets.device)  # pixels from query to key
    low, high = (-(-(2 * apart + end) * counts[:, None] // (2 * side)) for end in (-1, 1))  # rounded up
    nearest = (2 * apart * counts[:, None] + side) // (2 * side)
    start = torch.where(high > low, low, nearest)
    stop, last = torch.maximum(high, start + 1), counts[:, None] - 1
    found = offsets.new_zeros(start.shape)
    for further in range(-(-wide // side) + 1):
        offset = torch.minimum(start + further, stop - 1)
        offset = torch.minimum(torch.maximum(offset, -last), last)
        found = torch.maximum(found, offsets.gather(1, offset + wide - 1))
    place = torch.arange(side, device=offsets.device)
    return found[:, place - place[:, None] + side - 1]
