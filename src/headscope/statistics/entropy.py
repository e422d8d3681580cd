"""Entropy of attention rows."""

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
from headscope.maps.row_wise import RowWise, cut_indices
from headscope.maps.rows import (
    Sums,
    Weights,
    absolute_weights,
    map_rows,
    normalize_rows,
    padded_indices,
    sum_rows,
    x_log_x,
)


def row_entropy(weights: Weights, visible: Visible, smoothing: float = 0.0) -> Float[Tensor, "batch head query"]:
    """Return the entropy of every row in nats; NaN where a row has no weight.

    With S = Σ|w|, −Σ p·log p is log S − Σ|w|·log|w| / S, which avoids normalizing the row.
    """
    if smoothing:
        return x_log_x(normalize_rows(weights, visible, smoothing)).sum(-1).neg_()
    sizes = absolute_weights(weights, visible)
    total = sizes.sum(-1)
    return (total.log() - x_log_x(sizes).sum(-1) / total).clamp_min_(0)


@dataclass(frozen=True)
class Entropy(RowWise):
    """Mean entropy of a head's rows p = |w| / Σ|w|, in nats: log n for uniform attention to n keys, 0 for a single key.

    `smoothing` s uses (1 − s)·p + s/n instead (Clark et al., 2019: 0.0001). `rows="cls"` uses the row of [CLS] only.
    """

    smoothing: float = 0.0
    rows: Literal["all", "cls"] = "all"

    cites = ("clark2019",)
    units = "nats"

    def __post_init__(self) -> None:
        check_choices(self)
        check_fraction(self, "smoothing")

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the indices of the selected rows; nothing for all rows."""
        return padded_indices(queries.roles == ROLES.index("cls")) if self.rows == "cls" else ()

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the indices of the selected rows among some."""
        return cut_indices(tables[0], tables[1], rows.start, rows.stop) if tables else ()

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sum over an example's rows."""
        function = partial(row_entropy, smoothing=self.smoothing)
        return {"entropy": sum_rows(map_rows(batch.focus, function, rows=self.token_tables(batch)))}
