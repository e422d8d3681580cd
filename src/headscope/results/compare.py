"""Two measurements side by side: how far they differ, and whether chance alone would do that."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import DataWarning, InputError, unknown_name
from headscope.core.prose import join_words
from headscope.results import measured
from headscope.results.stamp import read_provenance, stamp
from headscope.uncertainty.corrections import CORRECTIONS, correct_p_values
from headscope.uncertainty.intervals import CONFIDENCE, t_quantile, t_test

LEVEL = 0.05
"""A difference is called significant where its corrected p-value is below this."""


def compare(
    a: xr.Dataset,
    b: xr.Dataset,
    *,
    variable: str | None = None,
    paired: bool | None = None,
    correction: str = "holm",
) -> xr.Dataset:
    """How far `b` lies above `a`, for every variable and cell that both have.

    For each variable x: x (the mean of b minus that of a), x_low and x_high (95 % interval), x_n, x_p, x_p_adjusted
    (corrected for all cells of the variable) and x_significant. Where both hold x_rows of the same data, examples are
    compared with themselves: Student's t of their differences, and x_sd is the spread of these. Otherwise, or with
    `paired=False`, it is Welch's t from means, spreads and counts, and x_n is the smaller count; `paired=True` refuses
    to fall back on that. `correction` is "holm", "benjamini_hochberg" or "none".

    Two lenses of one result are compared by compare(data.sel(lens="raw"), data.sel(lens="effective")).
    """
    if correction not in CORRECTIONS:
        raise unknown_name("correction", correction, CORRECTIONS)
    names = _common(a, b, variable)
    left, right = _same_lenses(measured.opened(a), measured.opened(b))
    why = _unpaired(left, right, names) if paired is not False else "paired=False"
    if why and paired:
        raise InputError(f"paired=True compares every example with itself, but {why}.")
    if why and paired is None:
        warnings.warn(f"Compared as if they were different examples: {why}.", DataWarning, stacklevel=2)
    left, right, said = _aligned(left, right, by_example=not why)
    found: dict[str, xr.DataArray] = {}
    for name in names:
        cells = _unpaired_cells(left, right, name) if why else _paired_cells(left, right, name)
        cells["value"].attrs.update(right[name].attrs)  # units and names
        adjusted = xr.apply_ufunc(lambda p: correct_p_values(p, correction), cells["p"])
        found |= {f"{name}_{each}" if each != "value" else name: cells[each] for each in cells}
        found |= {f"{name}_p_adjusted": adjusted, f"{name}_significant": (adjusted < LEVEL).astype(np.int8)}
    facts: dict[str, Any] = {
        "paired": not why,
        "correction": correction,
        "confidence": CONFIDENCE,
        "level": LEVEL,
    }
    facts |= {"compared": said, **({"unpaired_because": why} if why else {})}
    return stamp(xr.Dataset(found), command="headscope compare", a=read_provenance(a), b=read_provenance(b), **facts)


def _common(a: xr.Dataset, b: xr.Dataset, variable: str | None) -> list[str]:
    """The variables that both hold with their counts."""
    known, other = ([name for name in each.data_vars if f"{name}_n" in each] for each in (a, b))
    both = [str(name) for name in known if name in other]
    if not both:
        raise InputError(
            f"These results cannot be compared: one holds {_quote(known)}, the other {_quote(other)}, and nothing is "
            "in both. Measure both with the same statistics."
        )
    if variable is not None and variable not in both:
        raise unknown_name("variable of both results", variable, both)
    return both if variable is None else [variable]


def _same_lenses(a: xr.Dataset, b: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Lenses with lenses of the same name; or one with one, whatever their names."""
    first, second = ([str(each) for each in data["lens"].values] for data in (a, b))
    if set(first) & set(second):
        return a, b
    if len(first) == len(second) == 1:
        both = [f"{second[0]} − {first[0]}"]
        return a.assign_coords(lens=both), b.assign_coords(lens=both)
    raise InputError(
        f"These results have no lens in common: one has {join_words(first)}, the other {join_words(second)}. Choose "
        "one of each: compare(a.sel(lens=…), b.sel(lens=…))."
    )


def _unpaired(a: xr.Dataset, b: xr.Dataset, names: Sequence[str]) -> str:
    """Why examples cannot be compared with themselves, or nothing where they can."""
    for name in names:
        if lacks := [which for which, each in (("first", a), ("second", b)) if f"{name}_rows" not in each]:
            many = "neither holds" if len(lacks) == 2 else f"the {lacks[0]} does not hold"
            return f"{many} the values of single examples, '{name}_rows'. Measure with rows=True"
    data = [read_provenance(each).get("data") for each in (a, b)]
    if None not in data and data[0] != data[1]:
        return f"they were measured on different data, {data[0]} and {data[1]}"
    return ""


def _aligned(a: xr.Dataset, b: xr.Dataset, *, by_example: bool) -> tuple[xr.Dataset, xr.Dataset, dict[str, Any]]:
    """The cells, and with `by_example` the examples, that both have; and how many those are of how many."""
    kept = [each if by_example else each.drop_dims("example", errors="ignore") for each in (a, b)]
    left, right = xr.align(*kept, join="inner", copy=False)
    said: dict[str, Any] = {}
    for dim in left.dims:
        sizes = (left.sizes[dim], kept[0].sizes[dim], kept[1].sizes[dim])
        if len(set(sizes)) > 1:
            said[str(dim)] = dict(zip(("both", "a", "b"), sizes, strict=True))
        if not sizes[0]:
            raise InputError(
                f"These results have no {dim} in common: one has {join_words(kept[0][dim].values, limit=8)}, the other "
                f"{join_words(kept[1][dim].values, limit=8)}. Compare results of the same texts and the same axes."
            )
    if said:
        parts = [
            f"{each['both']} {dim}s ({each['a']} in the first, {each['b']} in the second)" for dim, each in said.items()
        ]
        warnings.warn(f"Only what both results have is compared: {', '.join(parts)}.", DataWarning, stacklevel=3)
    return left, right, said


def _paired_cells(a: xr.Dataset, b: xr.Dataset, name: str) -> xr.Dataset:
    """Student's t of the differences; an example counts where both have a value."""
    rows = (b[f"{name}_rows"] - a[f"{name}_rows"]).transpose("example", *b[name].dims)
    cells = measured.of_rows(rows).drop_vars("rows")
    error = cells["sd"] / cells["n"] ** 0.5  # NaN for a single example, as the spread is
    return cells.assign(p=xr.apply_ufunc(t_test, cells["value"], error, cells["n"] - 1))


def _unpaired_cells(a: xr.Dataset, b: xr.Dataset, name: str) -> xr.Dataset:
    """Welch's t, which lets the spreads differ."""
    counts = [each[f"{name}_n"].where(each[f"{name}_n"] > 1) for each in (a, b)]
    first, second = (each[f"{name}_sd"] ** 2 / n for each, n in zip((a, b), counts, strict=True))
    error = (first + second) ** 0.5
    freedom = (first + second) ** 2 / (first**2 / (counts[0] - 1) + second**2 / (counts[1] - 1))
    freedom = freedom.where(error > 0, counts[0] + counts[1] - 2)  # no spread at all: any number of them will do
    value = b[name] - a[name]
    reach = xr.apply_ufunc(t_quantile, freedom) * error
    n = np.minimum(a[f"{name}_n"], b[f"{name}_n"])
    found = {"value": value, "n": n, "low": value - reach, "high": value + reach}
    return xr.Dataset({**found, "p": xr.apply_ufunc(t_test, value, error, freedom)})


def _quote(names: Sequence[Any]) -> str:
    return join_words((f"'{name}'" for name in names), empty="no measured variable")
