"""How different the rows of a map are from one another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.trace import Visible
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Weights, iterate_layers, normalize_rows


def mean_row_distance(weights: Weights, visible: Visible) -> Float[Tensor, "batch head"]:
    """Return the mean total variation ½ Σ|p − q| over all pairs of rows that have weight; NaN with fewer than two."""
    shares = normalize_rows(weights, visible)
    present = ~shares.isnan().any(-1)  # batch head query
    shares = shares.masked_fill(~present[..., None], 0.0).contiguous()
    distances = torch.cdist(shares, shares, p=1) / 2  # batch head query other
    among = distances * (present[..., None] & present[..., None, :])
    rows = present.sum(-1)
    return among.sum((-2, -1), dtype=torch.float64) / (rows * (rows - 1))  # 0 / 0 with one row


@dataclass(frozen=True)
class RowDistance(PerExample):
    """Mean total variation between the rows of a map: 0 if all rows are the same, 1 if no two share a key.

    Rows are p = |w| / Σ|w|, and that of two of them is ½ Σ|p − q|. It says how far a map distinguishes queries, such
    as a deep rollout, whose rows grow alike.
    """

    scope = "layer"
    quantities: ClassVar = {"row_distance": "total variation between rows"}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over all pairs of rows of each map."""
        layers = [mean_row_distance(weights, visible) for weights, visible in iterate_layers(batch.focus)]
        return {"row_distance": torch.stack(layers, dim=1)}
