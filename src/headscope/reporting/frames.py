"""A Dataset as a table: chosen quantities as columns, the labels of its dimensions as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pandas as pd
import xarray as xr

ENDS = ("", "_low", "_high")


@dataclass(frozen=True)
class Quantity:
    """A column of a table: a variable of a Dataset at a selection, with its interval where it has one."""

    title: str
    variable: str
    where: Mapping[str, Any] = field(default_factory=dict)
    scale: int | float = 1
    interval: bool = True
    whole: bool = False  # a count, which may be missing


def to_frame(data: xr.Dataset, rows: Mapping[str, str], quantities: Sequence[Quantity]) -> pd.DataFrame:
    """Return a row for each combination of labels; `rows` are dimensions with the titles that they get.

    Rows and columns without any value are left out.

    >>> data = xr.Dataset({"x": ("task", [0.5, 0.25])}, coords={"task": ["RTE", "QNLI"]})
    >>> to_frame(data, {"task": "task"}, [Quantity("share (%)", "x", scale=100)]).to_dict("index")
    {'RTE': {'share (%)': 50.0}, 'QNLI': {'share (%)': 25.0}}
    """
    labels = list(product(*(data[dim].values.tolist() for dim in rows)))
    names = list(rows.values())
    index = pd.MultiIndex.from_tuples(labels, names=names) if len(rows) > 1 else pd.Index([n for (n,) in labels])
    sizes = {dim: data.sizes[dim] for dim in rows}
    columns: dict[str, Any] = {}
    for quantity in quantities:
        part = data.sel(quantity.where)
        interval = quantity.interval and f"{quantity.variable}_low" in data
        for end in ENDS if interval else ENDS[:1]:
            columns[f"{quantity.title}{end}"] = _read_column(part[f"{quantity.variable}{end}"], sizes, quantity)
    frame = pd.DataFrame(columns, index=index).rename_axis(names)
    return frame.dropna(how="all").dropna(axis=1, how="all")


def format_intervals(frame: pd.DataFrame, form: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the table with each number and its interval as one text, such as 0.42 [0.39, 0.45].

    >>> frame = pd.DataFrame({"x": [0.4], "x_low": [0.35], "x_high": [0.45]})
    >>> format_intervals(frame, ".2f")["x"].tolist()
    ['0.40 [0.35, 0.45]']
    """
    titles = [title for title in frame.columns if not str(title).endswith(ENDS[1:])]
    result = frame[titles].copy()
    for title in titles if columns is None else columns:
        if title not in frame:
            continue
        ends = [frame[f"{title}{end}"] for end in ENDS if f"{title}{end}" in frame]
        result[title] = [_format(form, *values) for values in zip(*ends, strict=True)]
    return result


def _format(form: str, value: Any, *ends: float) -> str:
    if pd.isna(value):
        return ""
    interval = f" [{', '.join(f'{end:{form}}' for end in ends)}]" if ends else ""
    return f"{value:{form}}{interval}"


def _read_column(variable: xr.DataArray, sizes: Mapping[str, int], quantity: Quantity) -> Any:
    missing = {dim: size for dim, size in sizes.items() if dim not in variable.dims}
    flat = variable.expand_dims(missing).transpose(*sizes).values.reshape(-1)
    if quantity.whole:
        return pd.array([pd.NA if value != value else int(value) for value in flat], dtype="Int64")
    if flat.dtype.kind in "UO":
        return [str(value) for value in flat]
    return quantity.scale * flat.astype(float)
