"""Distance between the attention of two heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.spec import check_choices
from headscope.core.statistic import check_fraction
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers, normalize_rows

CELLS = {"cpu": 2**18, "cuda": 2**27}
"""Cells of all heads that are compared at a time: what fits the cache of a CPU core, and what occupies a GPU."""


def divergences(
    shares: Float[Tensor, "batch head query key"], *, mean: bool = False
) -> Float[Tensor, "batch head other"]:
    """Return the Jensen–Shannon divergence of every pair of heads in nats, summed over the rows that both have.

    With m = (p + q) / 2 it is Σ (p·log p + q·log q) / 2 − Σ m·log m, where p·log p is what the pair of a head with
    itself gives: one logarithm for each cell of a pair. Half of the pairs are computed, as they are symmetric.
    """
    _, heads, queries, keys = shares.shape
    cells = CELLS.get(shares.device.type, CELLS["cpu"])
    examples = max(1, cells // max(1, heads * queries * keys))
    tables = [_compare_rows(part, max(1, cells // (heads * keys)), mean) for part in torch.split(shares, examples)]
    upper = torch.cat(tables).triu() if tables else shares.new_zeros(0, heads, heads, dtype=torch.float64)
    return upper + upper.triu(1).mT


@dataclass(frozen=True)
class HeadDistance(PerExample):
    """Jensen–Shannon divergence between the rows of two heads, summed over tokens (Clark et al., 2019).

    Rows are |w| / Σ|w|, smoothed to (1 − s)·p + s/n. `reduce="mean"` averages over tokens, which makes texts of
    different lengths comparable.
    """

    smoothing: float = 0.001
    reduce: Literal["sum", "mean"] = "sum"

    scope = "stack"
    cites = ("clark2019",)
    units = "nats"
    quantities: ClassVar = {"head_distance": "distance of heads"}

    def __post_init__(self) -> None:
        check_choices(self)
        check_fraction(self, "smoothing")

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return the heads that each head is compared with."""
        return {"other_layer": batch.focus.layers, "other_head": batch.focus.heads}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the divergence of every pair of heads."""
        maps = batch.focus
        shares = [normalize_rows(weights, visible, self.smoothing) for weights, visible in iterate_layers(maps)]
        table = divergences(torch.cat(shares, dim=1), mean=self.reduce == "mean")
        return {"head_distance": table.view(-1, *(len(maps.layers), len(maps.heads)) * 2)}


def _compare_rows(
    shares: Float[Tensor, "batch head query key"], step: int, mean: bool
) -> Float[Tensor, "batch head other"]:
    """Return the divergence of each head from itself and those after it, `step` rows at a time."""
    batch, heads, queries, _ = shares.shape
    rows = shares.transpose(0, 1).flatten(1, 2)  # head row key
    sums = torch.cat([_mixture_sums(part) for part in torch.split(rows, step, dim=1)], dim=-1)
    single = sums.diagonal(dim1=0, dim2=1).mT  # head row: Σ p·log p; NaN where a row has no weight
    divergence = ((single[:, None] + single) / 2 - sums).clamp_min_(0).double()
    divergence = divergence.view(heads, heads, batch, queries).movedim(2, 0)
    count = (~divergence.isnan()).sum(-1)
    total: Tensor = divergence.nansum(-1)
    return total / count if mean else total.masked_fill(count == 0, torch.nan)


def _mixture_sums(shares: Float[Tensor, "head row key"]) -> Float[Tensor, "head other row"]:
    """Return Σ m·log m of the mean m of the rows of each head and those after it; 0 for the heads before.

    A share of 0 is replaced by the smallest normal number, whose m·log m rounds to 0 in the sum: log 0 is infinite.
    """
    halves = (shares / 2).clamp_min_(torch.finfo(shares.dtype).tiny)
    sums = shares.new_zeros(len(shares), *shares.shape[:2])
    mixture, logarithm = torch.empty_like(halves), torch.empty_like(halves)
    for head in range(len(shares)):
        torch.add(halves[head:], halves[head], out=mixture[head:])
        torch.log(mixture[head:], out=logarithm[head:])
        torch.sum(logarithm[head:].mul_(mixture[head:]), -1, out=sums[head, head:])
    return sums
