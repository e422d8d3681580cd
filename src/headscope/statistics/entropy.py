"""How widely each head spreads its attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.statistic import check_fraction
from headscope.core.tokens import ROLES, Tokens
from headscope.core.trace import Visible
from headscope.maps.per_example import PerExample
from headscope.maps.rows import (
    Weights,
    absolute_weights,
    gather_rows,
    map_rows,
    mean_over_rows,
    normalize_rows,
    padded_indices,
    x_log_x,
)


def row_entropy(weights: Weights, visible: Visible, smoothing: float = 0.0) -> Float[Tensor, "batch head query"]:
    """The entropy of every row, in nats; NaN where a row has no weight at all.

    With S = Σ|w|, −Σ p·log p is log S − Σ|w|·log|w| / S: the row is never divided.
    """
    if smoothing:
        return x_log_x(normalize_rows(weights, visible, smoothing)).sum(-1).neg_()
    sizes = absolute_weights(weights, visible)
    whole = sizes.sum(-1)
    return (whole.log() - x_log_x(sizes).sum(-1) / whole).clamp_min_(0)


@dataclass(frozen=True)
class Entropy(PerExample):
    """The entropy of a head's rows, in nats, of |w| / Σ|w|; log n is even attention to n keys, 0 is all on one.

    `smoothing` s takes (1 − s)·p + s/n instead; Clark et al. (2019) have 0.0001. `rows="cls"` takes the row of [CLS]
    alone.
    """

    smoothing: float = 0.0
    rows: Literal["all", "cls"] = "all"

    cites = ("clark2019",)
    units = "nats"

    def __post_init__(self) -> None:
        check_choices(self)
        check_fraction(self, "smoothing")

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """The rows that count, where not all do."""
        return padded_indices(queries.roles == ROLES.index("cls")) if self.rows == "cls" else ()

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """The mean over an example's rows."""
        maps = batch.focus
        measure = partial(row_entropy, smoothing=self.smoothing)
        if self.rows == "all":
            return {"entropy": mean_over_rows(map_rows(maps, measure))}
        index, there = self.known(batch)
        rows = map_rows(maps, lambda weights, visible: measure(*gather_rows(weights, visible, index, there)))
        return {"entropy": mean_over_rows(rows)}
