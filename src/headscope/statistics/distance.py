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
from headscope.maps.row_wise import RowWise
from headscope.maps.rows import Sums, Weights, absolute_weights, map_rows, sum_rows


def row_distance(
    weights: Weights, visible: Visible, distances: Float[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Return Σ p·|i − j| of every row, with p = |w| / Σ|w|; NaN where a row has no weight."""
    sizes = absolute_weights(weights, visible)
    total = sizes.sum(-1)
    return sizes.mul_(distances[:, None].to(sizes.dtype)).sum(-1) / total


@dataclass(frozen=True)
class Distance(RowWise):
    """Mean distance from a query to its keys in tokens, weighted by |w| / Σ|w|.

    Padding is not counted. In cross attention it is the difference between the positions in the two texts.
    """

    units = "tokens"
    quantities: ClassVar = {"distance": "attention distance"}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the position of each token."""
        return queries.positions, keys.positions

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:
        """Return the positions of some queries and keys."""
        of_queries, of_keys = tables
        return of_queries[:, rows], of_keys[:, :keys]

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sum over an example's rows."""
        queries, keys = self.token_tables(batch)
        distances = (queries[:, :, None] - keys[:, None]).abs().float()
        return {"distance": sum_rows(map_rows(batch.focus, row_distance, distances))}
