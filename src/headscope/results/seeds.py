"""Results of several seeds of training as one."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.estimate import ENDS

LARGEST = ("output_change", "changed", "changed_margin")
"""The largest of all inputs, and so of all seeds: no mean is one."""


def combine_seeds(numbers: xr.Dataset) -> xr.Dataset:
    """Return the numbers without the dimension `seed`: means, with intervals that hold those of every seed.

    The ends of an interval are the least and the greatest of all seeds; of what is the largest of all inputs, the
    largest is taken. Ratios of combined numbers are not combined ratios: take them seed by seed, before this. Counts
    and texts must be the same for all seeds; hashes of different models are listed. Numbers without the dimension are
    returned as they are.
    """
    if "seed" not in numbers.dims:
        return numbers
    combined = {str(name): _combine(numbers, str(name)) for name in numbers.data_vars}
    return xr.Dataset(combined, {name: numbers[name] for name in numbers.coords if name != "seed"}, numbers.attrs)


def _combine(numbers: xr.Dataset, name: str) -> xr.DataArray:
    values = numbers[name]
    if "seed" not in values.dims:
        return values
    if np.issubdtype(values.dtype, np.floating):
        stem, _, end = name.rpartition("_")
        known = all(f"{stem}{suffix}" in numbers for suffix in ENDS)
        if known and end == "low":
            return values.min("seed", skipna=False)
        if known and end == "high":
            return values.max("seed", skipna=False)
        if name in LARGEST:
            return values.max("seed", keep_attrs=True)
        return values.mean("seed", skipna=False, keep_attrs=True)
    first = values.isel(seed=0, drop=True)
    if name.endswith("_hash"):
        return first.copy(data=_list_hashes(values))
    if not bool((values == first).all()):
        raise InputError(
            f"Cannot combine seeds: '{name}' is not the same for all of them: "
            f"{', '.join(map(str, np.unique(values.values)))}. Join runs on the same inputs only."
        )
    return first


def _list_hashes(values: xr.DataArray) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the different hashes of all seeds in one text."""
    table = values.transpose(..., "seed").values
    texts = [" ".join(dict.fromkeys(map(str, row))) for row in table.reshape(-1, table.shape[-1])]
    return np.array(texts).reshape(table.shape[:-1])
