"""How differently two heads attend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.spec import check_choices
from headscope.core.statistic import check_fraction
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers, normalize_rows, x_log_x

CELLS = {"cpu": 2**20, "cuda": 2**27}
"""How many cells are compared at a time: what fits a processor's cache, what keeps a GPU busy."""


def divergences(
    shares: Float[Tensor, "batch head query key"], *, mean: bool = False
) -> Float[Tensor, "batch head other"]:
    """The Jensen–Shannon divergence of every two heads' rows, in nats, summed over the rows that both have.

    It is H((p + q) / 2) − (H(p) + H(q)) / 2, and the same both ways, so half of the pairs are computed.
    """
    own = -x_log_x(shares).sum(-1)  # batch head query; NaN where a row has no weight
    batch, heads, queries, keys = shares.shape
    some = max(1, CELLS.get(shares.device.type, 2**20) // (batch * queries * keys))
    found = shares.new_zeros(batch, heads, heads, dtype=torch.float64)
    for first in range(heads):
        for start in range(first, heads, some):
            others = slice(start, start + some)
            middle = (shares[:, others] + shares[:, first, None]).div_(2)
            rows = -x_log_x(middle).sum(-1) - (own[:, others] + own[:, first, None]) / 2
            found[:, first, others] = _over_rows(rows.clamp_min_(0), mean)
    upper = found.triu()
    return upper + upper.triu(1).mT


@dataclass(frozen=True)
class HeadDistance(PerExample):
    """The Jensen–Shannon divergence between the rows of two heads, summed over tokens (Clark et al., 2019).

    Rows are |w| / Σ|w|, smoothed to (1 − s)·p + s/n. `reduce="mean"` takes the mean over tokens, which does not grow
    with the text.
    """

    smoothing: float = 0.001
    reduce: Literal["sum", "mean"] = "sum"

    scope = "stack"
    cites = ("clark2019",)
    units = "nats"

    def __post_init__(self) -> None:
        check_choices(self)
        check_fraction(self, "smoothing")

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """The heads that each is compared with."""
        return {"other_layer": batch.focus.layers, "other_head": batch.focus.heads}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """One number for every two heads."""
        maps = batch.focus
        shares = [normalize_rows(weights, visible, self.smoothing) for weights, visible in iterate_layers(maps)]
        found = divergences(torch.cat(shares, dim=1), mean=self.reduce == "mean")
        sizes = (len(maps.layers), len(maps.heads)) * 2
        return {"head_distance": found.view(-1, *sizes)}


def _over_rows(rows: Float[Tensor, "batch other query"], mean: bool) -> Float[Tensor, "batch other"]:
    """Summed or averaged over the rows that have a value; NaN where none has."""
    rows, many = rows.double(), (~rows.isnan()).sum(-1)
    total: Tensor = rows.nansum(-1)
    return total / many if mean else total.masked_fill(many == 0, torch.nan)
