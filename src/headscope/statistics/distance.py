"""Mean distance between a query and the keys it attends to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Weights, absolute_weights, map_rows, mean_over_rows, token_positions


def row_distance(
    weights: Weights, visible: Visible, distances: Float[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Return Σ p·|i − j| of every row, with p = |w| / Σ|w|; NaN where a row has no weight."""
    sizes = absolute_weights(weights, visible)
    total = sizes.sum(-1)
    return sizes.mul_(distances[:, None].to(sizes.dtype)).sum(-1) / total


@dataclass(frozen=True)
class Distance(PerExample):
    """Mean distance from a query to its keys in tokens, weighted by |w| / Σ|w|.

    Padding is not counted. In cross attention it is the difference between the positions in the two texts.
    """

    scope = "layer"
    units = "tokens"
    quantities: ClassVar = {"distance": "attention distance"}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the position of each token."""
        return token_positions(queries), token_positions(keys)

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over an example's rows."""
        queries, keys = self.token_tables(batch)
        distances = (queries[:, :, None] - keys[:, None]).abs().float()
        return {"distance": mean_over_rows(map_rows(batch.focus, row_distance, distances))}
