"""Options of `hs.compare`, `hs.cluster` and `hs.save`."""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.options import OVERWRITE, describe, option

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class CompareOptions:
    """What `hs.compare` takes."""

    a: "xr.Dataset" = field(metadata=describe("A result of `hs.measure`."))
    b: "xr.Dataset" = field(metadata=describe("A second result; differences are second minus first."))
    _: KW_ONLY
    variable: str | None = option(None, "Compare only this variable, such as entropy.")
    paired: bool | None = option(None, "Require pairs of examples, or do not pair examples.", flag="unpaired")
    correction: str = option("holm", "Correction of p-values: holm, benjamini_hochberg or none.")


@dataclass(frozen=True)
class ClusterOptions:
    """What `hs.cluster` takes."""

    data: "xr.Dataset" = field(metadata=describe("A result of `hs.measure` with the statistic head_distance."))
    _: KW_ONLY
    behaviour: "xr.DataArray | None" = option(
        None, "What each head does, by layer and head. Default: from what was measured.", shell=False
    )
    count: int | None = option(None, "Number of clusters. Default: that with the largest mean silhouette.")
    permutations: int = option(9_999, "Permutations of the test of layers.")
    seed: int = option(0, "Seed of the permutations.")


@dataclass(frozen=True)
class SaveOptions:
    """What `hs.save` takes."""

    what: Any = field(metadata=describe("A Dataset, Maps, Importances, a figure, a model or a list of examples."))
    path: str | Path = field(metadata=describe("The file, whose ending says the format, or a folder for a model."))
    _: KW_ONLY
    overwrite: bool = option(False, OVERWRITE)
