"""Largest weight of attention rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.trace import Visible
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Weights, absolute_weights, map_rows, mean_over_rows


def row_peak(weights: Weights, visible: Visible) -> Float[Tensor, "batch head query"]:
    """Return the maximum of |w| / Σ|w| in every row; NaN where a row has no weight."""
    sizes = absolute_weights(weights, visible)
    return sizes.amax(-1) / sizes.sum(-1)


@dataclass(frozen=True)
class Peak(PerExample):
    """Mean of the largest weight |w| / Σ|w| of a head's rows.

    Heads with at most 0.1 are the "broad" heads of Clark et al. (2019).
    """

    scope = "layer"
    cites = ("clark2019",)
    quantities: ClassVar = {"peak": "largest weight of a row"}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over an example's rows."""
        return {"peak": mean_over_rows(map_rows(batch.focus, row_peak))}
