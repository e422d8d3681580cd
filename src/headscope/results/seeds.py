"""Results of several seeds of training as one."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.estimate import ENDS

COLLAPSED = "collapsed"
"""The variable that says which seeds of a task did not learn it."""

LARGEST = ("output_change", "changed", "changed_margin")
"""The largest of all inputs, and so of all seeds: no mean is one."""


def combine_seeds(numbers: xr.Dataset) -> xr.Dataset:
    """Return the numbers without the dimension `seed`: means, with intervals that hold those of every seed.

    The ends of an interval are the least and the greatest of all seeds; of what is the largest of all inputs, the
    largest is taken. Ratios of combined numbers are not combined ratios: take them seed by seed, before this. Counts
    and texts must be the same for all seeds; hashes of different models are listed. Numbers without the dimension are
    returned as they are. Seeds that the variable `collapsed` marks are left out.
    """
    if "seed" not in numbers.dims:
        return numbers
    labels = numbers.drop_vars([*numbers.data_vars, *({"seed"} & {*numbers.coords})])
    return labels.assign({str(name): _combine(numbers, str(name)) for name in numbers.data_vars})


def _combine(numbers: xr.Dataset, name: str) -> Any:
    """Return a variable without `seed`."""
    values: Any = numbers[name].variable  # to align the labels of DataArrays takes most of the time
    if "seed" not in values.dims:
        return values
    if name == COLLAPSED:
        return values.sum("seed")
    if np.issubdtype(values.dtype, np.floating):
        without = xr.Variable("seed", np.zeros(numbers.sizes["seed"], bool))
        left_out = numbers[COLLAPSED].variable if COLLAPSED in numbers else without
        stem, _, end = name.rpartition("_")
        known = all(f"{stem}{suffix}" in numbers for suffix in ENDS)
        reduction = {"low": "min", "high": "max"}.get(end, "mean") if known else "max" if name in LARGEST else "mean"
        combined = getattr(values.where(~left_out), reduction)("seed", skipna=True, keep_attrs=True)
        complete = (values.notnull() | left_out).all("seed") | (name in LARGEST)
        return combined.where(complete).transpose(*(dim for dim in values.dims if dim != "seed"))
    first = values.isel(seed=0)
    if name.endswith("_hash"):
        return first.copy(data=_list_hashes(values))
    if not bool((values == first).all()):
        raise InputError(
            f"Cannot combine seeds: '{name}' is not the same for all of them: "
            f"{', '.join(map(str, np.unique(values.values)))}. Join runs on the same inputs only."
        )
    return first


def _list_hashes(values: xr.Variable) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the different hashes of all seeds in one text."""
    table = values.transpose(..., "seed").values
    texts = [" ".join(dict.fromkeys(map(str, row))) for row in table.reshape(-1, table.shape[-1])]
    return np.array(texts).reshape(table.shape[:-1])
