"""How often a head rests on the first token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Weights, absolute_weights, map_rows, mean_over_rows, token_positions

ROUNDING = 1e-6
"""How much more than the threshold a weight in float32 must be, so that one that equals it does not count."""


def share_of_first(
    weights: Weights, visible: Visible, first: Bool[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Return the share of |w| of every row on the first key; NaN where a row does not see it, or has no weight."""
    sizes = absolute_weights(weights, visible)
    share = (sizes * first[:, None]).sum(-1) / sizes.sum(-1)
    return share.masked_fill(~(visible & first).any(-1)[:, None], torch.nan)


def even_share(
    weights: Weights, visible: Visible, first: Bool[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Return one in n for the same rows, n the number of keys that a row sees."""
    even = (1 / visible.sum(-1)).to(weights)[:, None]
    return torch.where(share_of_first(weights, visible, first).isnan(), torch.nan, even)


@dataclass(frozen=True)
class SinkRate(PerExample):
    """Share of queries whose weight on the first token, |w| / Σ|w|, is more than `threshold` (Gu et al., 2025).

    `rows="mean"` counts as the paper does: 1 for an example in which the mean over the queries is more than that, and
    0 otherwise; its mean over heads and layers is the paper's sink rate. Rows that do not see the first token are left
    out. `sink_rate_uniform` is the null: what the same rows would give if they spread their weight evenly.
    """

    threshold: float = 0.3
    rows: Literal["each", "mean"] = "each"

    scope = "layer"
    cites = ("gu2025",)
    quantities: ClassVar = {
        "sink_rate": "share of queries that rest on the first token",
        "sink_rate_uniform": "share of queries that rest on the first token, if spread evenly",
    }

    def __post_init__(self) -> None:
        check_choices(self)
        if not 0 <= self.threshold <= 1:
            raise InputError(
                f"The parameter 'threshold' of 'sink_rate' is a weight from 0 to 1, but got {self.threshold}."
            )

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return which key is the first token, for each query."""
        first = keys.real & (token_positions(keys) == 0)
        return (first[:, None].expand(-1, queries.real.shape[1], -1),)

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the share of the rows of an example that are above the threshold, and its null."""
        (first,) = self.token_tables(batch)
        functions = {"sink_rate": share_of_first, "sink_rate_uniform": even_share}
        return {name: self._count(map_rows(batch.focus, function, first)) for name, function in functions.items()}

    def _count(self, shares: Float[Tensor, "batch layer head query"]) -> Float[Tensor, "batch layer head"]:
        if self.rows == "mean":
            return _exceeds(mean_over_rows(shares), self.threshold)
        return mean_over_rows(_exceeds(shares, self.threshold))


def _exceeds(shares: Float[Tensor, "*axes"], threshold: float) -> Float[Tensor, "*axes"]:
    """Return 1 where a share is above the threshold, by more than rounding, 0 where not, NaN where there is none."""
    return torch.where(shares.isnan(), torch.nan, (shares.double() > threshold + ROUNDING).to(shares))
