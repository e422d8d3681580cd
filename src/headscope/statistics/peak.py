"""Largest weight of attention rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.trace import Visible
from headscope.maps.row_wise import RowWise
from headscope.maps.rows import Sums, Weights, absolute_weights, map_rows, sum_rows


def row_peak(weights: Weights, visible: Visible) -> Float[Tensor, "batch head query"]:
    """Return the maximum of |w| / Σ|w| in every row; NaN where a row has no weight."""
    sizes = absolute_weights(weights, visible)
    return sizes.amax(-1) / sizes.sum(-1)


@dataclass(frozen=True)
class Peak(RowWise):
    """Mean of the largest weight |w| / Σ|w| of a head's rows.

    Heads with at most 0.1 are the "broad" heads of Clark et al. (2019).
    """

    cites = ("clark2019",)
    quantities: ClassVar = {"peak": "largest weight of a row"}

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sum over an example's rows."""
        return {"peak": sum_rows(map_rows(batch.focus, row_peak))}
