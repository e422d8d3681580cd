"""Column and offset profiles: what the rows of a map have in common.

Both are power means with exponent 1/2, (mean of √p)²: a column in which every row has p counts p; one in which half of
the rows have p and the others 0 counts p/4. So structure that most rows share stands out.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.patterns.classify.normalize import NormalizedMaps

CACHE_CELLS = 2**16
"""Cells that fit into a CPU cache."""


@dataclass(frozen=True)
class Profiles:
    """Column and offset profiles of a batch of maps, and the maps without their columns."""

    columns: Float[Tensor, "map token"]  # power mean over the rows of each column
    excess: Float[Tensor, "map token"]  # how far that is above the uniform weight, 1/n
    rest: Float[Tensor, "map token token"]  # the map minus the excess of its columns
    roots: Float[Tensor, "map token token"]  # √ of the rest
    offsets: Float[Tensor, "map offset"]  # share of the rest at each offset from 1 − width to width − 1


def compute_profiles(maps: NormalizedMaps) -> Profiles:
    """Compute the profiles of maps."""
    rows = maps.nonzero_rows.sum(-1, keepdim=True).clamp_min(1)
    roots = maps.weights.sqrt()
    columns = (roots.sum(1) / rows).square()
    excess = (columns - 1 / maps.counts.clamp_min(1)[:, None]).clamp_min(0)
    rest = (maps.weights - excess[:, None]).clamp_min_(0)
    roots = torch.sqrt(rest, out=roots)  # allocating new memory costs more than the square roots
    offsets = diagonal_sums(roots).square() / (_rows_per_offset(maps).clamp_min(1) * rows)
    return Profiles(columns, excess, rest, roots, offsets)


def diagonal_sums(cells: Float[Tensor, "map token token"]) -> Float[Tensor, "map offset"]:
    """Sum along every diagonal, from the lowest to the highest.

    >>> diagonal_sums(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[3.0, 5.0, 2.0]]
    """
    width = cells.shape[1]
    step = max(1, len(cells) if cells.is_cuda else CACHE_CELLS // width**2)
    buffer = cells.new_zeros(min(step, len(cells)), width * (2 * width + 1))
    inside = buffer[:, : 2 * width * width].view(-1, width, 2 * width)[..., width - 1 : 2 * width - 1]
    sheared = buffer.view(-1, width, 2 * width + 1)[..., : 2 * width - 1]  # each row starts one cell further left
    sums = []
    for chunk in torch.split(cells, step):
        inside[: len(chunk)] = chunk
        sums.append(sheared[: len(chunk)].sum(1))
    return torch.cat(sums)


def _rows_per_offset(maps: NormalizedMaps) -> Int[Tensor, "map offset"]:
    """Count the rows with any weight that have a key at each offset."""
    width, counts = maps.nonzero_rows.shape[1], maps.counts[:, None]
    before = torch.nn.functional.pad(maps.nonzero_rows.cumsum(-1), (1, 0))
    offset = torch.arange(1 - width, width, device=before.device)
    last = (counts - offset).clamp(0, width).clamp_max(counts)
    first = (-offset).clamp_min(0).expand_as(last)
    return (before.gather(1, last) - before.gather(1, first)).clamp_min(0)
