"""Measured results as tidy tables, one row per number, for spreadsheets, R and other tools."""

import csv
import re
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from pandas.api.types import is_numeric_dtype

from headscope.core.errors import DataWarning, OutputError, require_package
from headscope.results.select import SUFFIXES, main_variables, restore_axes

AXES = ("lens", "site", "layer", "head")
COLUMNS = ("value", *(suffix for suffix in SUFFIXES if suffix != "rows"))


def means_table(data: xr.Dataset) -> pd.DataFrame:
    """Return one row per cell: lens, site, layer, head, further axes, variable, value, sd, n, low and high.

    The column of an axis is empty for variables without this axis. The result of `compare` adds the columns p,
    p_adjusted and significant.
    """
    restored = restore_axes(data)
    tables = []
    for name in _table_variables(restored):
        variables = {column: name if column == "value" else f"{name}_{column}" for column in COLUMNS}
        columns = {column: restored[variable] for column, variable in variables.items() if variable in restored}
        tables.append((name, xr.Dataset(columns)))
    return _concatenate(tables)


def rows_table(data: xr.Dataset) -> pd.DataFrame:
    """Return one row per cell and example: the axes, the id of the example, the variable and its value."""
    restored = restore_axes(data)
    names = [name for name in _table_variables(restored) if f"{name}_rows" in restored]
    if not names:
        raise OutputError(
            "There is no value of single examples to write: this Dataset holds none. Measure with rows=True, or leave "
            "'.rows' out of the name to write the means."
        )
    return _concatenate([(name, xr.Dataset({"value": restored[f"{name}_rows"]})) for name in names])


def write_csv(data: xr.Dataset, name: str, path: Path) -> None:
    """Write a table as comma-separated text, numbers in full precision, without provenance."""
    write_cells(_table_for(data, name), path, index=False)


def write_cells(frame: pd.DataFrame, path: Path, *, index: bool) -> None:
    """Write a table as comma-separated text, in which no text is a formula to a spreadsheet (`guard_cell`)."""
    guarded = frame.apply(lambda column: column if is_numeric_dtype(column) else column.map(guard_cell))
    guarded.columns, guarded.index = _guard_labels(frame.columns), _guard_labels(frame.index)
    # before Python 3.13 the csv module does not quote a carriage return, which would end the row
    quoting = csv.QUOTE_NONNUMERIC if _holds_return(guarded) else csv.QUOTE_MINIMAL
    guarded.to_csv(path, index=index, lineterminator="\n", encoding="utf-8", quoting=quoting)


def _holds_return(frame: pd.DataFrame) -> bool:
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    texts = [column.unique() for column in columns if not is_numeric_dtype(column)]
    levels = [index.get_level_values(level) for index in (frame.index, frame.columns) for level in range(index.nlevels)]
    return any("\r" in str(value) for values in (*texts, *levels) for value in values)


def guard_cell(value: Any) -> Any:
    """Return a text with an apostrophe in front if a spreadsheet would take it for a formula; otherwise unchanged.

    A spreadsheet runs cells that begin with =, +, -, @, a tab or a carriage return. Numbers are no formulas. Texts with
    apostrophes before such a character get one more, so that removing one gives the original.

    >>> [guard_cell(value) for value in ("=1+1", "-0.5", -0.5, "'@home", "a=b")]
    ["'=1+1", '-0.5', -0.5, "''@home", 'a=b']
    """
    if not isinstance(value, str) or not _FORMULA.match(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def _guard_labels(labels: pd.Index) -> pd.Index:
    if isinstance(labels, pd.MultiIndex):
        rows = [tuple(map(guard_cell, row)) for row in labels]
        return pd.MultiIndex.from_tuples(rows, names=list(map(guard_cell, labels.names)))
    return labels.map(guard_cell).rename(guard_cell(labels.name))


def write_parquet(data: xr.Dataset, name: str, path: Path) -> None:
    """Write a table as Parquet, with the Dataset's provenance in the file's metadata under `headscope`."""
    why = ("parquet", "A .parquet file", "   (or use .nc, which needs nothing more)")
    arrow, parquet = require_package("pyarrow", *why), require_package("pyarrow.parquet", *why)
    table = arrow.Table.from_pandas(_table_for(data, name), preserve_index=False)
    provenance = {b"headscope": str(data.attrs.get("headscope", "{}")).encode()}
    parquet.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **provenance}), path)


def _table_for(data: xr.Dataset, name: str) -> pd.DataFrame:
    """Return the table for a file name: the means for `heads.csv`, the single examples for `heads.rows.csv`."""
    stem, ending = Path(name).stem, Path(name).suffix
    if stem.endswith(".rows"):
        return rows_table(data)
    if any(str(variable).endswith("_rows") for variable in data.data_vars):
        warnings.warn(
            f"{name} has the means; the values of the {data.sizes['example']} single examples are not in it. "
            f"Save to {stem}.rows{ending} to get them.",
            DataWarning,
            stacklevel=6,  # the caller of save
        )
    return means_table(data)


def _table_variables(data: xr.Dataset) -> list[str]:
    if {"query", "key"} & set(data.dims):
        raise OutputError("A table holds measured numbers, but this Dataset holds maps. Save it as .nc or .zarr.")
    return main_variables(data)


def _concatenate(tables: list[tuple[str, xr.Dataset]]) -> pd.DataFrame:
    """Concatenate the tables of the variables, the columns of axes first."""
    if not tables:
        raise OutputError("There is nothing to write: this Dataset has no variables.")
    dims = dict.fromkeys(str(dim) for _, data in tables for dim in data["value"].dims)
    axes = [*(axis for axis in AXES if axis in dims), *(dim for dim in dims if dim not in AXES)]
    table = pd.concat([_to_frame(name, data, axes) for name, data in tables], ignore_index=True)
    return table[[*axes, "variable", *(column for column in COLUMNS if column in table)]]


def _to_frame(name: str, table: xr.Dataset, axes: list[str]) -> pd.DataFrame:
    """Return one variable as a table, with integers in a type that allows empty cells."""
    dims = [axis for axis in axes if axis in table["value"].dims]
    frame = table.reset_coords(drop=True).to_dataframe(dim_order=dims).reset_index().assign(variable=name)
    integers = [axis for axis in dims if frame[axis].dtype.kind in "iu"]
    integers += [column for column in ("n", "significant") if column in frame]
    converted: dict[str, Any] = {column: frame[column].astype("Int64") for column in integers}
    return frame.assign(**converted)
