"""Measured results as plain tables, one row for each number: for spreadsheets, R and other tools."""

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from headscope.core.errors import DataWarning, OutputError, require_package
from headscope.results.measured import COMPANIONS, opened

FIRST = ("lens", "site", "layer", "head")
BESIDE = tuple(each for each in COMPANIONS if each != "rows")


def table(data: xr.Dataset) -> pd.DataFrame:
    """One row per cell: lens, site, layer, head, places along further axes, variable, value, sd, n, low and high.

    A place along an axis that a variable does not have is left empty. What `compare` gives has p, p_adjusted and
    significant too.
    """
    whole = opened(data)
    return _long([(name, _cells(whole, name)) for name in _variables(whole)])


def table_of_rows(data: xr.Dataset) -> pd.DataFrame:
    """One row per cell and example: the same places, with the example's id, the variable and its value."""
    whole = opened(data)
    kept = [name for name in _variables(whole) if f"{name}_rows" in whole]
    if not kept:
        raise OutputError(
            "There is no value of single examples to write: this Dataset holds none. Measure with rows=True, or leave "
            "'.rows' out of the name to write the means."
        )
    return _long([(name, xr.Dataset({"value": whole[f"{name}_rows"]})) for name in kept])


def write_csv(data: xr.Dataset, name: str, part: Path) -> None:
    """The table as comma-separated text, numbers in full; provenance does not fit into it."""
    _of_name(data, name).to_csv(part, index=False, lineterminator="\n", encoding="utf-8")


def write_parquet(data: xr.Dataset, name: str, part: Path) -> None:
    """The table as Parquet, with the Dataset's provenance in the file's metadata under `headscope`."""
    arrow = require_package("pyarrow", "parquet", "A .parquet file", "   (or use .nc, which needs nothing more)")
    parquet = require_package(
        "pyarrow.parquet", "parquet", "A .parquet file", "   (or use .nc, which needs nothing more)"
    )
    made = arrow.Table.from_pandas(_of_name(data, name), preserve_index=False)
    facts = {b"headscope": str(data.attrs.get("headscope", "{}")).encode()}
    parquet.write_table(made.replace_schema_metadata({**(made.schema.metadata or {}), **facts}), part)


def _of_name(data: xr.Dataset, name: str) -> pd.DataFrame:
    """`heads.csv` has the means, `heads.rows.csv` the values of single examples."""
    stem, ending = Path(name).stem, Path(name).suffix
    if stem.endswith(".rows"):
        return table_of_rows(data)
    if any(str(each).endswith("_rows") for each in data.data_vars):
        warnings.warn(
            f"{name} has the means; the values of the {data.sizes['example']} single examples are not in it. "
            f"Save to {stem}.rows{ending} to get them.",
            DataWarning,
            stacklevel=5,  # at whoever called save
        )
    return table(data)


def _variables(data: xr.Dataset) -> list[str]:
    """What gets rows of its own; maps do not belong in a table."""
    held = [str(name) for name in data.data_vars]
    beside = {f"{name}_{each}" for name in held for each in COMPANIONS}
    if {"query", "key"} & set(data.dims):
        raise OutputError("A table holds measured numbers, but this Dataset holds maps. Save it as .nc or .zarr.")
    return [name for name in held if name not in beside]


def _cells(data: xr.Dataset, name: str) -> xr.Dataset:
    beside = {each: data[f"{name}_{each}"] for each in BESIDE if f"{name}_{each}" in data}
    return xr.Dataset({"value": data[name], **beside})


def _long(parts: list[tuple[str, xr.Dataset]]) -> pd.DataFrame:
    """The parts one below the other, axes first."""
    if not parts:
        raise OutputError("There is nothing to write: this Dataset has no variables.")
    axes = dict.fromkeys(str(dim) for _, each in parts for dim in each["value"].dims)
    order = [*(axis for axis in FIRST if axis in axes), *(axis for axis in axes if axis not in FIRST)]
    frames = [_frame(name, each, order) for name, each in parts]
    found = pd.concat(frames, ignore_index=True)
    named = [each for each in ("value", *BESIDE) if each in found]
    return found[[*order, "variable", *named]]


def _frame(name: str, part: xr.Dataset, order: list[str]) -> pd.DataFrame:
    """One variable; whole numbers stay whole where other variables leave their column empty."""
    dims = [axis for axis in order if axis in part["value"].dims]
    frame = part.reset_coords(drop=True).to_dataframe(dim_order=dims).reset_index().assign(variable=name)
    places: dict[str, Any] = {axis: frame[axis].astype("Int64") for axis in dims if frame[axis].dtype.kind in "iu"}
    counts: dict[str, Any] = {each: frame[each].astype("Int64") for each in ("n", "significant") if each in frame}
    return frame.assign(**places, **counts)
