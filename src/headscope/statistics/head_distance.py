"""Distance between the attention of two heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.state import State
from headscope.core.statistic import check_fraction
from headscope.core.tokens import ROLES, Tokens
from headscope.maps.divergences import divergences
from headscope.maps.per_example import PerExample
from headscope.maps.rows import gather_rows, iterate_layers, normalize_rows, padded_indices


@dataclass(frozen=True)
class HeadDistance(PerExample):
    """Jensen–Shannon divergence between the rows of two heads, summed over tokens (Clark et al., 2019).

    Rows are |w| / Σ|w|, smoothed to (1 − s)·p + s/n. `reduce="mean"` averages over tokens, which makes texts of
    different lengths comparable; `rows="cls"` compares the row of [CLS] alone.
    """

    smoothing: float = 0.001
    reduce: Literal["sum", "mean"] = "sum"
    rows: Literal["all", "cls"] = "all"

    scope = "stack"
    cites = ("clark2019",)
    units = "nats"

    def __post_init__(self) -> None:
        check_choices(self)
        check_fraction(self, "smoothing")

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return the heads that each head is compared with."""
        return {"other_layer": batch.focus.layers, "other_head": batch.focus.heads}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the indices of the selected rows; nothing for all rows."""
        return padded_indices(queries.roles == ROLES.index("cls")) if self.rows == "cls" else ()

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the divergence of every pair of heads."""
        maps, chosen = batch.focus, self.token_tables(batch)
        layers = (gather_rows(*layer, *chosen) if chosen else layer for layer in iterate_layers(maps))
        shares = [normalize_rows(weights, visible, self.smoothing) for weights, visible in layers]
        table = divergences(torch.cat(shares, dim=1), mean=self.reduce == "mean")
        return {"head_distance": table.view(-1, *(len(maps.layers), len(maps.heads)) * 2)}

    def finish(self, state: State) -> xr.Dataset:
        """Return the mean over examples, with a name that says whether tokens are summed or averaged."""
        data = super().finish(state)
        data["head_distance"].attrs["long_name"] = f"distance of heads, {self.reduce} over tokens"
        return data
