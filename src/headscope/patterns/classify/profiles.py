"""What columns and offsets of a map have in common over its rows.

Both are means by the root, (mean of √p)²: a column in which every row has p counts p; one in which half of the rows
have p and the others nothing counts p/4. So what most rows share stands out from what a few rows have.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.patterns.classify.row_weights import Sizes

CACHED = 2**16
"""Cells that a processor's cache holds."""


@dataclass(frozen=True)
class Profiles:
    """The columns and the offsets of many maps, and what is left of the maps without their columns."""

    columns: Float[Tensor, "map token"]  # what the rows have in common in each column
    excess: Float[Tensor, "map token"]  # how far that is above an even share, 1/n
    rest: Float[Tensor, "map token token"]  # the map without its columns' excess
    roots: Float[Tensor, "map token token"]  # √ of the rest
    offsets: Float[Tensor, "map offset"]  # the rest's share at each offset from 1 − width to width − 1


def profiles_of(sizes: Sizes) -> Profiles:
    """The profiles of maps."""
    rows = sizes.rows.sum(-1, keepdim=True).clamp_min(1)
    even = 1 / sizes.counts.clamp_min(1)[:, None]
    roots = sizes.weights.sqrt()
    columns = (roots.sum(1) / rows).square()
    excess = (columns - even).clamp_min(0)
    rest = (sizes.weights - excess[:, None]).clamp_min_(0)
    roots = torch.sqrt(rest, out=roots)  # new memory costs more than the roots themselves
    return Profiles(columns, excess, rest, roots, _offsets(roots, sizes))


def diagonal_sums(cells: Float[Tensor, "map token token"]) -> Float[Tensor, "map offset"]:
    """The sum along every diagonal, from the one below to the one above all others.

    >>> diagonal_sums(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])).tolist()
    [[3.0, 5.0, 2.0]]
    """
    wide = cells.shape[1]
    step = few(cells)
    room = cells.new_zeros(min(step, len(cells)), wide * (2 * wide + 1))
    inside = room[:, : 2 * wide * wide].view(-1, wide, 2 * wide)[..., wide - 1 : 2 * wide - 1]
    slanted = room.view(-1, wide, 2 * wide + 1)[..., : 2 * wide - 1]  # each row begins one place further left
    found = []
    for start in range(0, len(cells), step):
        part = cells[start : start + step]
        inside[: len(part)] = part
        found.append(slanted[: len(part)].sum(1))
    return torch.cat(found) if found else cells.new_zeros(0, 2 * wide - 1)


def few(cells: Float[Tensor, "map token token"]) -> int:
    """How many maps a processor's cache holds beside what is made of them; a GPU takes all."""
    return max(1, len(cells) if cells.is_cuda else CACHED // (cells.shape[1] * cells.shape[2]))


def _offsets(roots: Float[Tensor, "map token token"], sizes: Sizes) -> Float[Tensor, "map offset"]:
    """At each offset the mean by the root over those rows that have such a key, times their share of all rows."""
    rows = _rows_with(sizes)
    whole = sizes.rows.sum(-1, keepdim=True).clamp_min(1)
    return diagonal_sums(roots).square() / (rows.clamp_min(1) * whole)


def _rows_with(sizes: Sizes) -> Int[Tensor, "map offset"]:
    """How many rows that have any weight have a key at each offset."""
    wide = sizes.rows.shape[1]
    before = torch.nn.functional.pad(sizes.rows.cumsum(-1), (1, 0))  # rows among the first so many
    offset = torch.arange(1 - wide, wide, device=before.device)
    last = (sizes.counts[:, None] - offset).clamp(0, wide).clamp_max(sizes.counts[:, None])
    first = (-offset).clamp_min(0).expand_as(last)
    return (before.gather(1, last) - before.gather(1, first)).clamp_min(0)
