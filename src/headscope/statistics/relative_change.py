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
from headscope.maps.per_example import PerExample
from headscope.maps.rows import apply_in_blocks, iterate_layers


def relative_distance(
    weights: Float[Tensor, "batch #head query key"], raw: Float[Tensor, "batch head query key"], visible: Visible
) -> Float[Tensor, "batch head"]:
    """Return ‖M − A‖ / ‖A‖ of each head over the visible cells, Frobenius norms; NaN where A is 0."""
    squares = apply_in_blocks(_row_squares, raw, weights, visible).double().sum(-1)  # 2 batch head
    change, total = squares.unbind()
    return (change / total.masked_fill(total == 0, torch.nan)).sqrt_()


@dataclass(frozen=True)
class RelativeChange(PerExample):
    """‖M − A‖ / ‖A‖ of every head: how far its map M through the lens is from raw attention A, over the visible cells.

    For effective attention it is √(1 − share²), with the `effective_share`: the lost part is orthogonal to the rest.
    A lens that merges heads is compared with every head.
    """

    scope = "layer"
    cites = ("brunner2020", "sun2021")
    quantities: ClassVar = {"relative_change": "change relative to raw attention"}

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """Return the raw lens, unless it is the measured lens."""
        raw: Lens = lenses.make("raw")
        return () if lens == raw else (raw,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return the heads of raw attention; the measured lens may merge heads."""
        return {"head": self._raw(batch).heads}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the relative change of each map."""
        layers = zip(iterate_layers(batch.focus), iterate_layers(self._raw(batch)), strict=True)
        changes = [relative_distance(weights, raw, visible) for (weights, visible), (raw, _) in layers]
        return {"relative_change": torch.stack(changes, dim=1)}

    def _raw(self, batch: Batch) -> Maps:
        return batch.maps["model", to_spec(lenses.make("raw"))]


def _row_squares(raw: Tensor, weights: Tensor, visible: Tensor) -> Float[Tensor, "2 batch head query"]:
    """Return Σ(m − a)² and Σa² of every row."""
    mask = visible[:, None].to(raw.dtype)
    tables = (weights - raw, raw)
    return torch.stack([(table * mask).square_().sum(-1) for table in tables])
