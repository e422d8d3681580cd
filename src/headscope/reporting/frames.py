"""A Dataset as a table: chosen quantities as columns, the labels of its dimensions as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pandas as pd
import xarray as xr

from headscope.core.estimate import ENDS as ENDS
from headscope.core.estimate import estimate, interval_names


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: a variable of a Dataset at a selection, with its interval where it has one."""

    title: str
    variable: str
    where: Mapping[str, Any] = field(default_factory=dict)
    scale: int | float = 1
    interval: bool = True
    whole: bool = False  # a count, which may be missing


def to_frame(data: xr.Dataset, rows: Mapping[str, str], quantities: Sequence[TableColumn]) -> pd.DataFrame:
    """Return a row for each combination of labels; `rows` are dimensions with the titles that they get.

    Rows and columns without any value are left out.

    >>> data = xr.Dataset({"x": ("task", [0.5, 0.25])}, coords={"task": ["RTE", "QNLI"]})
    >>> to_frame(data, {"task": "task"}, [TableColumn("share (%)", "x", scale=100)]).to_dict("index")
    {'RTE': {'share (%)': 50.0}, 'QNLI': {'share (%)': 25.0}}
    """
    labels = list(product(*(data[dim].values.tolist() for dim in rows)))
    names = list(rows.values())
    index = pd.MultiIndex.from_tuples(labels, names=names) if len(rows) > 1 else pd.Index([n for (n,) in labels])
    sizes = {dim: data.sizes[dim] for dim in rows}
    columns: dict[str, Any] = {}
    for quantity in quantities:
        found = estimate(data.sel(quantity.where), quantity.variable)
        ends = found.ends if quantity.interval and found.has_interval else (found.value,)
        for title, end in zip(interval_names(quantity.title), ends, strict=False):
            columns[title] = _read_column(end, sizes, quantity)
    frame = pd.DataFrame(columns, index=index).rename_axis(names)
    return frame.dropna(how="all").dropna(axis=1, how="all")


def _read_column(variable: xr.DataArray, sizes: Mapping[str, int], quantity: TableColumn) -> Any:
    missing = {dim: size for dim, size in sizes.items() if dim not in variable.dims}
    flat = variable.expand_dims(missing).transpose(*sizes).values.reshape(-1)
    if quantity.whole:
        return pd.array([pd.NA if value != value else int(value) for value in flat], dtype="Int64")
    if flat.dtype.kind in "UO":
        return [str(value) for value in flat]
    return quantity.scale * flat.astype(float)
