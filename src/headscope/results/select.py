"""Select a variable of a measured Dataset, its lenses, and labels along its further axes."""

import re
from collections.abc import Sequence

import xarray as xr

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words
from headscope.plotting import selection
from headscope.results.summarize import axis_label

SUFFIXES = ("sd", "n", "nan", "low", "high", "rows", "p", "p_adjusted", "significant")
"""Suffixes of the variables that accompany a variable x: x_sd, x_n and so on."""

AXES = ("lens", "layer", "head")
"""The axes of every measured variable; all others are further axes."""


def main_variables(data: xr.Dataset) -> list[str]:
    """Return the variables that do not accompany another one, as x_sd accompanies x."""
    names = [str(name) for name in data.data_vars]
    accompanying = {f"{name}_{suffix}" for name in names for suffix in SUFFIXES}
    return [name for name in names if name not in accompanying]


def head_variables(data: xr.Dataset) -> list[str]:
    """Return the main variables that have a value for each head."""
    tables = {name: data[name] for name in main_variables(data)}
    return [
        name
        for name, table in tables.items()
        if {"layer", "head"} <= {*table.dims, *table.coords} and not {"query", "key", "example"} & set(table.dims)
    ]


def is_merged(table: xr.DataArray) -> bool:
    """Whether a lens has one map per layer, in a table beside lenses that have one for each head."""
    if "head" not in table.dims or table.sizes["head"] < 2:
        return False
    has_value = table.notnull().any([dim for dim in table.dims if dim != "head"]).values
    return bool(has_value[0]) and not has_value[1:].any()


def check_same_heads(first: xr.DataArray, second: xr.DataArray, lenses: tuple[str, str]) -> None:
    """Raise InputError if one table has a value for each head, and the other one for each layer."""
    if is_merged(first) != is_merged(second):
        merged, other = lenses if is_merged(first) else reversed(lenses)
        raise InputError(
            f"The lens '{merged}' has one map per layer, '{other}' one for each head, so their values cannot be "
            "compared head by head. Compare means over heads: data.mean('head')."
        )


def select_variable(
    data: xr.Dataset, variable: str | None = None, *, lens: Sequence[str] | str | None = None, at: Sequence[str] = ()
) -> xr.Dataset:
    """Return one variable as `value`, with those of `sd n low high rows p …` that accompany it.

    Its dimensions are lens, layer, head, and the further axes that are not selected by `at`, such as
    `at=("role=sep",)`; an axis with a single label is dropped. The attribute `variable` is the name of the variable,
    `at` the selection in words, `label` the label of an axis that shows it.
    """
    selection.require_variables(data)
    restored = restore_axes(data)
    name = _find_variable(restored, variable)
    beside = {suffix: restored[f"{name}_{suffix}"] for suffix in SUFFIXES if f"{name}_{suffix}" in restored}
    selected = _select_lenses(xr.Dataset({"value": restored[name], **beside}), lens)
    words = []
    for choice in at:
        axis, index = _read_choice(choice, selected, name)
        selected = selected.isel({axis: [index]} if axis in AXES else {axis: index})
        words.append(f"{axis} {selected[axis].values.ravel()[0]}")
    single = {axis: 0 for axis in further_axes(selected) if selected.sizes[axis] == 1}
    return selected.isel(single).assign_attrs(variable=name, at=", ".join(words), label=axis_label(restored, name))


def further_axes(selected: xr.Dataset) -> list[str]:
    """Return the axes beyond lens, layer and head."""
    return [str(dim) for dim in selected["value"].dims if dim not in AXES]


def require_shown_axes(figure: str, selected: xr.Dataset, *shown: str, hint: str = "Choose with") -> None:
    """Raise InputError for further axes that a figure does not show."""
    if hidden := [axis for axis in further_axes(selected) if axis not in shown]:
        axes = join_words(f"{axis} ({join_words(selected[axis].values, limit=8)})" for axis in hidden)
        example = "+".join(f"{axis}={selected[axis].values[0]!s}" for axis in hidden)
        raise InputError(
            f"The figure '{figure}' cannot show every axis of '{selected.attrs['variable']}', which also has {axes}. "
            f"{hint} at='{example}'."
        )


def restore_axes(data: xr.Dataset) -> xr.Dataset:
    """Make dimensions of lens, site, layer and head again, where a single label of them was selected."""
    scalar = [name for name in ("lens", "site", "layer", "head") if name in data.coords and name not in data.dims]
    restored = data.expand_dims(scalar) if scalar else data
    return restored if "lens" in restored.dims else restored.expand_dims(lens=[""])


def _find_variable(data: xr.Dataset, variable: str | None) -> str:
    """Return the requested variable, or the first."""
    variables = head_variables(data)
    if not variables:
        raise InputError(
            f"This figure draws what was measured for every head, but the data has {selection.quote_variables(data)}. "
            "Measure first: hs.measure(model, texts, statistics=['entropy'])."
        )
    if variable is not None and variable not in variables:
        raise unknown_name("measured variable in this data", variable, variables)
    return variable if variable is not None else variables[0]


def _select_lenses(data: xr.Dataset, lens: Sequence[str] | str | None) -> xr.Dataset:
    """Return the requested lenses, in that order."""
    available = [str(name) for name in data["lens"].values]
    names = available if lens is None else [lens] if isinstance(lens, str) else list(lens)
    for name in names:
        if name not in available:
            raise unknown_name("lens in this data", name, available)
    return data.isel(lens=[available.index(name) for name in names])


def _read_choice(choice: str, data: xr.Dataset, variable: str) -> tuple[str, int]:
    """Return the axis and the index that a choice such as `role=sep` means."""
    axis, equals, label = (text.strip() for text in choice.partition("="))
    axes = [str(dim) for dim in data["value"].dims]
    if not equals:
        example = f"{axes[-1]}={data[axes[-1]].values[0]!s}"
        raise InputError(f"Cannot read at={choice!r}. Write axis=label, such as {example}.")
    if axis not in axes:
        raise unknown_name(f"axis of '{variable}'", axis, axes)
    if axis in ("layer", "head") and re.fullmatch(r"-\d+", label):
        return axis, selection.axis_index(data, axis, int(label))
    labels = [str(value) for value in data[axis].values]
    if label not in labels:
        raise unknown_name(f"{axis} in this data", label, labels)
    return axis, labels.index(label)


def stack_sets(data: xr.Dataset) -> xr.Dataset:
    """Return the changes along `set`, named as sets of heads are written, without those of missing heads."""
    dims = [str(dim) for dim in data["change"].dims]
    names = [name for name in data.data_vars if set(data[name].dims) == set(dims)]
    flat = data[names].stack(set=dims, create_index=False)
    labels = [
        _name_set(dict(zip(dims, cell, strict=True))) for cell in zip(*(flat[dim].values for dim in dims), strict=True)
    ]
    return flat.assign_coords(set=labels).dropna("set", subset=["change"])


def _name_set(cell: dict[str, object]) -> str:
    if "heads" in cell:
        return str(cell["heads"])
    return f"L{cell['layer']}" + (f"H{cell['head']}" if "head" in cell else "")
