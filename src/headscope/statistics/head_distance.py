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
from headscope.maps.rows import iterate_layers, normalize_rows, x_log_x

CELLS = {"cpu": 2**20, "cuda": 2**27}
"""Number of cells compared at a time: small enough for the cache of a CPU, large enough to occupy a GPU."""


def divergences(
    shares: Float[Tensor, "batch head query key"], *, mean: bool = False
) -> Float[Tensor, "batch head other"]:
    """Return the Jensen–Shannon divergence of every pair of heads in nats, summed over the rows that both have.

    It is H((p + q) / 2) − (H(p) + H(q)) / 2, which is symmetric, so half of the pairs are computed.
    """
    entropy = -x_log_x(shares).sum(-1)  # batch head query; NaN where a row has no weight
    batch, heads, queries, keys = shares.shape
    step = max(1, CELLS.get(shares.device.type, 2**20) // (batch * queries * keys))
    table = shares.new_zeros(batch, heads, heads, dtype=torch.float64)
    for first in range(heads):
        for start in range(first, heads, step):
            others = slice(start, start + step)
            mixture = (shares[:, others] + shares[:, first, None]).div_(2)
            rows = -x_log_x(mixture).sum(-1) - (entropy[:, others] + entropy[:, first, None]) / 2
            table[:, first, others] = _reduce_rows(rows.clamp_min_(0), mean)
    upper = table.triu()
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


def _reduce_rows(rows: Float[Tensor, "batch other query"], mean: bool) -> Float[Tensor, "batch other"]:
    """Return the sum or the mean over the rows that have a value; NaN where none has."""
    rows, count = rows.double(), (~rows.isnan()).sum(-1)
    total: Tensor = rows.nansum(-1)
    return total / count if mean else total.masked_fill(count == 0, torch.nan)
