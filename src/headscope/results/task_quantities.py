"""Quantities of every task of a study, with their intervals."""

from dataclasses import fields
from typing import Any

import xarray as xr

from headscope.core.estimate import Estimate, estimate, interval_names
from headscope.results.seeds import combine_seeds
from headscope.results.select import main_variables

WHOLE = "all"
"""The label of all inputs together, along an axis of groups of inputs."""


def list_quantities(data: xr.Dataset) -> dict[str, Estimate]:
    """Return every quantity of the tasks that has an interval, by name, along `task` and its further axes.

    Seeds are combined. Of an axis of groups of inputs, such as lengths, all inputs are taken; an axis with a single
    label is dropped.

    >>> data = xr.Dataset({"x": ("task", [0.4]), "x_low": ("task", [0.3]), "x_high": ("task", [0.5])})
    >>> list(list_quantities(data.assign(majority=("task", [0.5]))))
    ['x']
    """
    return {name: _select_whole(data, name) for name in quantity_names(data)}


def quantity_names(data: xr.Dataset) -> list[str]:
    """Return the names of the variables with the axis `task` and an interval."""
    names = [name for name in main_variables(data) if "task" in data[name].dims]
    return [name for name in names if estimate(data, name).has_interval]


def _select_whole(data: xr.Dataset, name: str) -> Estimate:
    combined = combine_seeds(data[interval_names(name)])
    others = [dim for dim in combined.dims if dim != "task"]
    whole = {dim: WHOLE for dim in others if dim in combined.coords and WHOLE in combined[dim].values.astype(str)}
    single = {dim: 0 for dim in others if dim not in whole and combined.sizes[dim] == 1}
    return estimate(combined.sel(whole, drop=True).isel(single, drop=True), name)


def list_axes(quantity: Estimate) -> list[str]:
    """Return the axes of a quantity beyond `task`."""
    return [str(dim) for dim in quantity.value.dims if dim != "task"]


def count_places(quantity: Estimate) -> int:
    """Return the number of values that a quantity has for one task."""
    return quantity.value.size // max(1, quantity.value.sizes["task"])


def stack_places(quantity: Estimate) -> Estimate:
    """Return a quantity along `task` and `place`, its further axes as one; their labels are along `place`."""
    axes = list_axes(quantity)
    tables: dict[str, Any] = {field.name: getattr(quantity, field.name) for field in fields(Estimate)}
    flat = {
        name: table.stack(place=axes, create_index=False) if axes else table.expand_dims("place")
        for name, table in tables.items()
        if table is not None
    }
    return Estimate(**{name: table.transpose("place", "task") for name, table in flat.items()})
