"""How the values of single examples spread, in one table."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Table
from headscope.reporting.parts import Place

MOST = 48
"""Rows that the table may have."""


def spreads(data: xr.Dataset, names: list[str], place: Place) -> tuple[list[Table], list[str]]:
    """A row for each variable and each place along its other axes; and the variables that are in it."""
    rows: list[dict[str, Any]] = []
    told = []
    for name in names:
        found = _rows(data[name], name)
        if found and len(rows) + len(found) <= MOST:
            rows += found
            told.append(name)
    if not rows:
        return [], []
    frame = pd.DataFrame(rows)
    keys = ["variable", "where"] if frame["where"].astype(bool).any() else ["variable"]
    frame = frame.drop(columns=[] if len(keys) > 1 else ["where"]).set_index(keys)
    least, most = int(frame["n"].min()), int(frame["n"].max())
    caption = "How single examples spread: their mean, standard deviation, quartiles and ends"
    n = most if least == most else f"{least:,} to {most:,}"
    return [Table(place.name("spread"), caption, frame if least != most else frame.drop(columns="n"), n)], told


def _rows(table: xr.DataArray, name: str) -> list[dict[str, Any]]:
    """One row for each place; those without any value are left out."""
    others = [dim for dim in table.dims if dim != "example"]
    flat = table.stack(place=others, create_index=False).transpose("place", "example") if others else None
    found = []
    for at, values in enumerate(flat.values if flat is not None else table.values[None]):
        values = values[np.isfinite(values)]
        if values.size:
            where = (
                ""
                if flat is None
                else ", ".join(f"{dim} {flat[dim].values[at]}" for dim in others if dim in flat.coords)
            )
            found.append({"variable": name.replace("_", " "), "where": where, **_summary(values)})
    return found


def _summary(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, float | int]:
    low, quarter, middle, three, high = np.percentile(values, [0, 25, 50, 75, 100])
    sd = values.std(ddof=1) if len(values) > 1 else np.nan
    ends = {"least": low, "25 %": quarter, "median": middle, "75 %": three, "largest": high}
    return {"n": len(values), "mean": values.mean(), "sd": sd, **ends}
