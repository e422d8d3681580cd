"""How far maximum flows are as large as they can be, and so no longer depend on the layers between."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.maps.per_example import PerExample


@dataclass(frozen=True)
class Saturation(PerExample):
    """The share of flows that are as large as the edges at their ends allow.

    `saturation_same` is the share of tokens that receive the same flow from every source. Both are diagnostics of the
    lens `flow`; maps of other lenses have no value.
    """

    cites = ("abnar2020",)
    quantities = MappingProxyType(
        {
            "saturation": "share of flows at their bound",
            "saturation_same": "share of tokens with the same flow from every source",
        }
    )

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the diagnostics of the maps, or NaN for lenses without them."""
        maps = batch.focus
        missing = torch.full((len(batch.examples), len(maps.layers), len(maps.heads)), torch.nan, dtype=torch.float64)
        names = {"saturation": "at_bound", "saturation_same": "same_for_sources"}
        return {variable: maps.diagnostics.get(name, missing) for variable, name in names.items()}
