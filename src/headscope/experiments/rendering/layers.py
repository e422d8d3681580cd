"""Tables and figures of quantities by layer, for reports that compare several lenses."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import format_signed, join_words
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.summary import list_tasks
from headscope.plotting.facets import interval_facets
from headscope.reporting.frames import TableColumn, to_frame

ROWS = {"task": "task", "lens": "attention"}


def name_layers(numbers: xr.Dataset) -> list[str]:
    """Return the layers as papers name them, such as L1."""
    return [f"L{layer}" for layer in numbers["layer"].values]


def name_least(numbers: xr.Dataset, name: str, lenses: Sequence[str], count: int = 2) -> str:
    """Return the layers with the least values for each lens, such as raw L5 and L6."""
    parts = []
    for lens in lenses:
        values = numbers[name].sel(lens=lens)
        layers = join_words(f"L{int(values['layer'][at])}" for at in sorted(np.argsort(values.values)[:count]))
        parts.append(f"{lens} {layers}")
    return ", ".join(parts)


def deviation_table(numbers: xr.Dataset, name: str) -> pd.DataFrame:
    """Return mean ± standard deviation over inputs, a row for each task and lens, a column for each layer.

    >>> data = xr.Dataset({name: (("task", "lens", "layer"), [[[0.5]]]) for name in ("x", "x_std")},
    ...                   {"task": ["RTE"], "lens": ["raw"], "layer": [1]})
    >>> deviation_table(data, "x").loc[("RTE", "raw"), "L1"]
    '0.50 ± 0.50'
    """
    means, deviations = (numbers[end].transpose("task", "lens", "layer") for end in (name, f"{name}_std"))
    rows = [(task, str(lens)) for task in list_tasks(numbers) for lens in numbers["lens"].values]
    index = pd.MultiIndex.from_tuples(rows, names=list(ROWS.values()))
    cells = [
        [f"{format_signed(mean, '.2f')} ± {std:.2f}" for mean, std in zip(*pair, strict=True)]
        for pair in zip(*(part.values.reshape(len(rows), -1).tolist() for part in (means, deviations)), strict=True)
    ]
    return pd.DataFrame(cells, index, name_layers(numbers))


def interval_table(numbers: xr.Dataset, name: str) -> pd.DataFrame:
    """Return means with their intervals, a row for each task and lens, a column for each layer."""
    columns = [TableColumn(f"L{layer}", name, {"layer": layer}) for layer in numbers["layer"].values]
    return to_frame(numbers, ROWS, columns)


def draw_by_layer(parts: Mapping[str, xr.Dataset], names: Mapping[str, str]) -> Figure:
    """Draw quantities over layers: a row of panels for each part, with the variable that `names` gives, by task."""
    intervals = {title: select_interval(part, names[title]) for title, part in parts.items()}
    table = {title: {task: data.sel(task=task) for task in list_tasks(data)} for title, data in intervals.items()}
    return interval_facets(table, x="layer", label="layer", lines=True)
