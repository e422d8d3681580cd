"""Which lens, layer and head of a Dataset a figure shows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words


def one_lens(data: xr.Dataset, lens: str | None) -> xr.Dataset:
    """The maps of one lens: the one asked for, or the first."""
    need(data, "weights")
    return select_lens(data, lens)


def select_lens(data: xr.Dataset, lens: str | None) -> xr.Dataset:
    """What one lens gave: the one asked for, or the first."""
    names = [str(name) for name in data["lens"].values]
    if lens is not None and lens not in names:
        raise unknown_name("lens in this data", lens, names)
    return data.isel(lens=names.index(lens) if lens is not None else 0)


def one_head(data: xr.Dataset, lens: str | None, layer: int | None, head: int | None) -> xr.Dataset:
    """One map with its tokens: what was asked for, or the first."""
    chosen = one_lens(data, lens)
    return chosen.isel(layer=place(data, "layer", layer), head=place(data, "head", head))


def place(data: xr.Dataset, what: str, label: int | None) -> int:
    """Where a layer or head stands in the data, the first by default."""
    labels = [int(each) for each in data[what].values]
    if label is None:
        return 0
    if label not in labels:
        raise InputError(f"There is no {what} {label} in this data: it has {what}s {ranged(labels)}.")
    return labels.index(label)


def need(data: xr.Dataset, *names: str) -> None:
    """Refuse data that lacks a variable, or has nothing in it."""
    for name in names:
        if name not in data:
            raise InputError(f"This figure needs the variable '{name}', but the data has {quote_variables(data)}.")
    if empty := [str(name) for name, size in data.sizes.items() if not size]:
        raise InputError(f"There is nothing to draw: the data has no {' and no '.join(empty)}.")


def cells(one: xr.Dataset) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The weights of one map, NaN where the query could not see the key."""
    weights = one["weights"].values.astype(float)
    return np.where(one["visible"].values, weights, np.nan) if "visible" in one else weights


def is_signed(one: xr.Dataset) -> bool:
    """Whether weights may be below zero."""
    return bool(one["signed"]) if "signed" in one.coords else bool((one["weights"] < 0).any())


def tokens(data: xr.Dataset, side: str) -> list[str]:
    """The tokens of the `query` or `key` side; numbers where the data names none."""
    known = f"{side}_token" in data.coords
    return [str(token) for token in (data[f"{side}_token"].values if known else range(data.sizes[side]))]


def special(data: xr.Dataset, side: str) -> list[bool]:
    """Which tokens of a side are special, such as [CLS]."""
    known = f"{side}_special" in data.coords
    return [bool(each) for each in data[f"{side}_special"].values] if known else [False] * data.sizes[side]


def label(one: xr.Dataset) -> str:
    """Where a map comes from, in short: `L3H7`."""
    return f"L{int(one['layer'])}H{int(one['head'])}"


def ranged(labels: Sequence[int]) -> str:
    """Whole numbers in words, runs as a range.

    >>> ranged([0, 1, 2, 3]), ranged([2, 5])
    ('0 to 3', '2, 5')
    """
    if len(labels) > 2 and list(labels) == list(range(labels[0], labels[-1] + 1)):
        return f"{labels[0]} to {labels[-1]}"
    return ", ".join(map(str, labels))


def quote_variables(data: xr.Dataset) -> str:
    """Return the names of the variables of a Dataset, quoted."""
    return join_words(f"'{name}'" for name in data.data_vars)
