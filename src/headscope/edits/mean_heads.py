"""The mean output of heads over a dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import HeadEdit, LayerHeads, SiteTensors
from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.results.store import open_result

MAKE = "Make it with hs.average_heads(model, data), and in the shell give the .nc file that hs.save wrote."


@dataclass(frozen=True)
class MeanHeads(HeadEdit):
    """The chosen heads write their mean output over a dataset, the same for every token: mean ablation.

    `means` is the result of `hs.average_heads` or the file that it was saved in.
    """

    means: str | Path | xr.Dataset | SiteTensors = ""

    cites = ("wang2023",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.means, str | Path) and not str(self.means):
            raise InputError(f"mean_heads needs means, the mean output of each head over a dataset. {MAKE}")
        if isinstance(self.means, Path):
            object.__setattr__(self, "means", str(self.means))
        tables = self.means if isinstance(self.means, SiteTensors) else _read_means(self.means)
        if not isinstance(self.means, str):
            object.__setattr__(self, "means", tables)
        object.__setattr__(self, "_tables", tables)

    @property
    def breaks(self) -> frozenset[str]:
        """The model computes something else."""
        return frozenset({"output"})

    def files(self) -> Mapping[str, Path]:
        """Return the file with the means."""
        return {"means": Path(self.means)} if isinstance(self.means, str) else {}

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise InputError for sites that the model does not have or that have no means."""
        self._find_tables().check_sites(self.selection.find_sites(sites), "means")

    def check_heads(self, heads: Mapping[str, Mapping[int, int]]) -> None:
        """Raise InputError for heads that the model does not have, and for means of other layers than it has."""
        super().check_heads(heads)
        for site in self.selection.find_sites(list(heads)):
            table = self._find_tables().find(site)
            found = [layer for layer, means in enumerate(table) if not bool(means.isnan().all())]
            if not set(found) >= set(heads[site]):
                raise InputError(
                    f"means are not of this model: they are of the layers {join_words(found)} of '{site}', and it "
                    f"has the layers {join_words(heads[site])}. {MAKE}"
                )

    def write(self, heads: LayerHeads, selected: list[int]) -> Float[Tensor, "batch selected query value"]:
        """Return the means for every token."""
        table, context = self._find_tables().find(heads.site), heads.context[:, selected]
        _, count, _, value = heads.context.shape
        fits = heads.layer < len(table) and table.shape[1] >= count
        means = table[heads.layer, :count] if fits else table[:0]
        means = means[..., ~means.isnan().all(0)] if fits else means  # NaN: other layers have more value dimensions
        if means.shape != (count, value) or bool(means.isnan().any()):
            raise InputError(
                f"means are not of this model: layer {heads.layer} of '{heads.site}' has {count} heads of {value} "
                f"dimensions, and they have the shape {list(table.shape)} (layer head value). {MAKE}"
            )
        return means[selected].to(context)[None, :, None].expand(context.shape)

    def _find_tables(self) -> SiteTensors:
        tables: SiteTensors = self.__dict__["_tables"]
        return tables


def _read_means(means: Any) -> SiteTensors:
    """Return the means as tensors `layer head value`, by site."""
    data = open_result(means) if isinstance(means, str) else means
    if not isinstance(data, xr.Dataset) or "head_output" not in data:
        name = f"'{means}'" if isinstance(means, str) else f"this {type(means).__name__}"
        raise InputError(f"means must be a result of hs.average_heads, but {name} has no 'head_output'. {MAKE}")
    table = data["head_output"].transpose("site", "layer", "head", "value")
    by_site = {str(site): _by_number(table.sel(site=site).dropna("layer", how="all")) for site in table["site"].values}
    return SiteTensors({site: torch.from_numpy(values.copy()) for site, values in by_site.items()})


def _by_number(table: xr.DataArray) -> Any:
    """Return the means of one site with a row for each number of a layer, NaN where a layer has no attention."""
    return table.reindex(layer=range(int(table["layer"].max()) + 1)).values
