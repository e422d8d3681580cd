"""How far a lens moves attention from raw attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.spec import to_spec
from headscope.core.trace import Visible
from headscope.maps.row_wise import RowWise
from headscope.maps.rows import Sums, apply_in_blocks, iterate_layers


def sum_squares(
    weights: Float[Tensor, "batch #head query key"], raw: Float[Tensor, "batch head query key"], visible: Visible
) -> Float[Tensor, "2 batch head"]:
    """Return ‖M − A‖² and ‖A‖² of each head over the visible cells, Frobenius norms."""
    return apply_in_blocks(_row_squares, raw, weights, visible).double().sum(-1)


@dataclass(frozen=True)
class RelativeChange(RowWise):
    """‖M − A‖ / ‖A‖ of every head: how far its map M through the lens is from raw attention A, over the visible cells.

    For effective attention it is √(1 − share²), with the `effective_share`: the lost part is orthogonal to the rest.
    A lens that merges heads is compared with every head.
    """

    cites = ("brunner2020", "sun2021")
    quantities: ClassVar = {"relative_change": "change relative to raw attention"}

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """Return the raw lens, unless it is the measured lens."""
        raw: Lens = lenses.make("raw")
        return () if lens == raw else (raw,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return the heads of raw attention; the measured lens may merge heads."""
        return {"head": self._raw(batch).heads}

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sums of squares, of the change and of raw attention."""
        layers = zip(iterate_layers(batch.focus), iterate_layers(self._raw(batch)), strict=True)
        squares = [sum_squares(weights, raw, visible) for (weights, visible), (raw, _) in layers]
        return {"relative_change": Sums(*torch.stack(squares, dim=2))}

    def finish_sums(self, sums: Mapping[str, Sums], batch: Batch) -> Mapping[str, Tensor]:  # noqa: ARG002
        """Return the relative change of each map; NaN where raw attention is 0."""
        return {name: entry.mean.masked_fill(entry.count == 0, torch.nan).sqrt() for name, entry in sums.items()}

    def _raw(self, batch: Batch) -> Maps:
        return batch.maps["model", to_spec(lenses.make("raw"))]


def _row_squares(raw: Tensor, weights: Tensor, visible: Tensor) -> Float[Tensor, "2 batch head query"]:
    """Return Σ(m − a)² and Σa² of every row."""
    mask = visible[:, None].to(raw.dtype)
    tables = (weights - raw, raw)
    return torch.stack([(table * mask).square_().sum(-1) for table in tables])
