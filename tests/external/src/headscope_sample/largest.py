"""A statistic from another package."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from headscope.core.batch import Batch
from headscope.maps.per_example import PerExample


@dataclass(frozen=True)
class Largest(PerExample):
    """The largest weight of a map, times a number."""

    times: float = 1.0

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return one number for each map."""
        return {"largest": batch.focus.weights.amax((-2, -1)) * self.times}
