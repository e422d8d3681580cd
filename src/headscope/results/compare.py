"""Compare two measured results: differences with intervals and corrected p-values."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import DataWarning, InputError, unknown_name
from headscope.core.prose import join_words
from headscope.results.select import check_same_heads, restore_axes
from headscope.results.stamp import read_provenance, stamp
from headscope.results.summarize import summarize_rows
from headscope.uncertainty.corrections import CORRECTIONS, LEVEL, correct_p_values
from headscope.uncertainty.intervals import CONFIDENCE, t_quantile, t_test


def compare(
    a: xr.Dataset,
    b: xr.Dataset,
    *,
    variable: str | None = None,
    paired: bool | None = None,
    correction: str = "holm",
) -> xr.Dataset:
    """Return the difference b − a of every variable and cell that both results have.

    For each variable x: x (the difference of the means), x_low and x_high (95 % interval), x_n, x_p, x_p_adjusted
    (corrected for all cells of the variable) and x_significant. If both results have x_rows of the same data, the test
    is paired by example: Student's t of the differences, and x_sd is their standard deviation. Otherwise, or with
    `paired=False`, it is Welch's t from means, standard deviations and counts, and x_n is the smaller count;
    `paired=True` raises InputError instead. `correction` is "holm", "benjamini_hochberg" or "none".

    Compare two lenses of one result with compare(data.sel(lens="raw"), data.sel(lens="effective")).

    >>> texts = ["The cat sat down.", "It rained.", "Nobody knew why."]
    >>> data = hs.measure(model, texts, lens=["raw", "norm"], statistics=["entropy"], rows=True, progress=False)
    >>> difference = hs.compare(data.sel(lens="raw"), data.sel(lens="norm"))  # norm minus raw
    >>> difference["entropy_p_adjusted"].dims
    ('lens', 'site', 'layer', 'head')
    """
    if correction not in CORRECTIONS:
        raise unknown_name("correction", correction, CORRECTIONS)
    names = _common_variables(a, b, variable)
    left, right = _match_lenses(restore_axes(a), restore_axes(b))
    reason = _unpaired_reason(left, right, names) if paired is not False else "paired=False"
    if reason and paired:
        raise InputError(f"paired=True compares every example with itself, but {reason}.")
    if reason and paired is None:
        warnings.warn(f"Compared as if they were different examples: {reason}.", DataWarning, stacklevel=2)
    left, right, sizes = _align(left, right, by_example=not reason)
    _check_heads(left, right, names, a, b)
    variables: dict[str, xr.DataArray] = {}
    for name in names:
        cells = _compare_unpaired(left, right, name) if reason else _compare_paired(left, right, name)
        cells["value"].attrs.update(right[name].attrs)  # units and long_name
        adjusted = xr.apply_ufunc(lambda p: correct_p_values(p, correction), cells["p"])
        variables |= {f"{name}_{part}" if part != "value" else name: cells[part] for part in cells}
        variables |= {f"{name}_p_adjusted": adjusted, f"{name}_significant": (adjusted < LEVEL).astype(np.int8)}
    facts = {"paired": not reason, "correction": correction, "confidence": CONFIDENCE, "level": LEVEL}
    facts |= {"compared": sizes, **({"unpaired_because": reason} if reason else {})}
    data = xr.Dataset(variables)
    return stamp(data, command="headscope compare", a=read_provenance(a), b=read_provenance(b), **facts)


def _check_heads(left: xr.Dataset, right: xr.Dataset, names: Sequence[str], a: xr.Dataset, b: xr.Dataset) -> None:
    """Raise InputError where a lens with one map per layer is compared with one that has a map for each head."""
    first, second = (restore_axes(data)["lens"].values for data in (a, b))
    for index, label in enumerate(left["lens"].values):
        known = label in first and label in second
        lenses = (str(label), str(label)) if known else (str(first[0]), str(second[0]))
        for name in names:
            check_same_heads(left[name].isel(lens=index), right[name].isel(lens=index), lenses)


def _common_variables(a: xr.Dataset, b: xr.Dataset, variable: str | None) -> list[str]:
    """Return the variables that both results have, with counts."""
    first, second = ([str(name) for name in data.data_vars if f"{name}_n" in data] for data in (a, b))
    common = [name for name in first if name in second]
    if not common:
        lists = [join_words(map(repr, names), empty="no measured variable") for names in (first, second)]
        raise InputError(
            f"These results cannot be compared: one holds {lists[0]}, the other {lists[1]}, and nothing is in "
            "both. Measure both with the same statistics."
        )
    if variable is not None and variable not in common:
        raise unknown_name("variable of both results", variable, common)
    return common if variable is None else [variable]


def _match_lenses(a: xr.Dataset, b: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Match lenses by name; if each result has a single lens, match these whatever their names."""
    first, second = ([str(lens) for lens in data["lens"].values] for data in (a, b))
    if set(first) & set(second):
        return a, b
    if len(first) == len(second) == 1:
        label = [f"{second[0]} − {first[0]}"]
        return a.assign_coords(lens=label), b.assign_coords(lens=label)
    raise InputError(
        f"These results have no lens in common: one has {join_words(first)}, the other {join_words(second)}. Choose "
        "one of each: compare(a.sel(lens=…), b.sel(lens=…))."
    )


def _unpaired_reason(a: xr.Dataset, b: xr.Dataset, names: Sequence[str]) -> str:
    """Return why examples cannot be paired; empty if they can."""
    for name in names:
        if lacking := [which for which, data in (("first", a), ("second", b)) if f"{name}_rows" not in data]:
            subject = "neither holds" if len(lacking) == 2 else f"the {lacking[0]} does not hold"
            return f"{subject} the values of single examples, '{name}_rows'. Measure with rows=True"
    first, second = (read_provenance(data).get("data") for data in (a, b))
    if first is not None and second is not None and first != second:
        return f"they were measured on different data, {first} and {second}"
    return ""


def _align(a: xr.Dataset, b: xr.Dataset, *, by_example: bool) -> tuple[xr.Dataset, xr.Dataset, dict[str, Any]]:
    """Return the cells, and with `by_example` the examples, that both results have, and the sizes that differ."""
    if not by_example:
        a, b = (data.drop_dims("example", errors="ignore") for data in (a, b))
    left, right = xr.align(a, b, join="inner", copy=False)
    sizes: dict[str, dict[str, int]] = {}
    for dim in map(str, left.dims):
        size = {"both": left.sizes[dim], "a": a.sizes[dim], "b": b.sizes[dim]}
        if len(set(size.values())) > 1:
            sizes[dim] = size
        if not size["both"]:
            raise InputError(
                f"These results have no {dim} in common: one has {join_words(a[dim].values, limit=8)}, the other "
                f"{join_words(b[dim].values, limit=8)}. Compare results of the same texts and the same axes."
            )
    if sizes:
        parts = [f"{n['both']} {dim}s ({n['a']} in the first, {n['b']} in the second)" for dim, n in sizes.items()]
        warnings.warn(f"Only what both results have is compared: {', '.join(parts)}.", DataWarning, stacklevel=3)
    return left, right, sizes


def _compare_paired(a: xr.Dataset, b: xr.Dataset, name: str) -> xr.Dataset:
    """Student's t of the differences of the examples that have a value in both results."""
    rows = (b[f"{name}_rows"] - a[f"{name}_rows"]).transpose("example", *b[name].dims)
    cells = summarize_rows(rows).drop_vars("rows")
    error = cells["sd"] / cells["n"] ** 0.5  # NaN for a single example, as sd is
    return cells.assign(p=xr.apply_ufunc(t_test, cells["value"], error, cells["n"] - 1))


def _compare_unpaired(a: xr.Dataset, b: xr.Dataset, name: str) -> xr.Dataset:
    """Welch's t, which allows unequal variances."""
    n_a, n_b = (data[f"{name}_n"].where(data[f"{name}_n"] > 1) for data in (a, b))
    first, second = a[f"{name}_sd"] ** 2 / n_a, b[f"{name}_sd"] ** 2 / n_b
    error = (first + second) ** 0.5
    degrees = (first + second) ** 2 / (first**2 / (n_a - 1) + second**2 / (n_b - 1))
    degrees = degrees.where(error > 0, n_a + n_b - 2)  # 0 / 0 without any variance
    value = b[name] - a[name]
    margin = xr.apply_ufunc(t_quantile, degrees) * error
    cells = {"value": value, "n": np.minimum(a[f"{name}_n"], b[f"{name}_n"])}
    cells |= {"low": value - margin, "high": value + margin, "p": xr.apply_ufunc(t_test, value, error, degrees)}
    return xr.Dataset(cells)
