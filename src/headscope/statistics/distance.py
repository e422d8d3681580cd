"""How far each head looks, in tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Weights, absolute_weights, map_rows, mean_over_rows, token_positions


def row_distance(
    weights: Weights, visible: Visible, apart: Float[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Σ p·|i − j| of every row, with p = |w| / Σ|w|; NaN where a row has no weight at all."""
    sizes = absolute_weights(weights, visible)
    whole = sizes.sum(-1)
    return sizes.mul_(apart[:, None].to(sizes.dtype)).sum(-1) / whole


@dataclass(frozen=True)
class Distance(PerExample):
    """The mean distance from a token to those it attends to, each counted by |w| / Σ|w|.

    Distance is counted in real tokens. In cross attention it is that between the places in the two texts.
    """

    units = "tokens"

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """The place of each token."""
        return token_positions(queries), token_positions(keys)

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """The mean over an example's rows."""
        maps, (here, there) = batch.focus, self.known(batch)
        apart = (here[:, :, None] - there[:, None]).abs().float()
        return {"distance": mean_over_rows(map_rows(maps, row_distance, apart))}
