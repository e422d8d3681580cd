"""Means of a selected variable with their intervals, and the words for them in figures and reports."""

from collections.abc import Sequence
from typing import Any

import xarray as xr

from headscope.core.prose import join_words
from headscope.uncertainty.intervals import student_margin


def mean_over(selected: xr.Dataset, dims: Sequence[str]) -> xr.Dataset:
    """Return the mean over dimensions, with `low` and `high` where they are known, and the counts of what is averaged.

    With rows, the mean is taken within each example, and the interval is exact. Without rows, the ends of the
    intervals are averaged, which gives an upper bound: the interval of a mean is at most as wide as the mean interval.
    """
    dims = [dim for dim in dims if dim in selected["value"].dims]
    if not dims:
        return selected
    counts = {"n_least": selected["n"].min(dims), "n_most": selected["n"].max(dims)} if "n" in selected else {}
    if "rows" in selected:
        return summarize_rows(selected["rows"].mean(dims)).assign(counts).assign_attrs(selected.attrs)
    means = selected[[name for name in ("value", "low", "high") if name in selected]].mean(dims)
    return means.assign({"n": counts["n_least"], **counts}) if counts else means


def summarize_rows(rows: xr.DataArray) -> xr.Dataset:
    """Return the mean over examples with its standard deviation, count and Student's interval."""
    n = rows.count("example")
    sd = rows.std("example", ddof=1).where(n > 1)
    margin = xr.apply_ufunc(student_margin, sd, n)
    mean = rows.mean("example")
    return xr.Dataset({"value": mean, "sd": sd, "n": n, "low": mean - margin, "high": mean + margin, "rows": rows})


def axis_label(data: xr.Dataset, variable: str) -> str:
    """Return the name of a variable's quantity with its units, as the label of an axis."""
    attributes = data[variable].attrs
    words = str(attributes.get("long_name", variable.replace("_", " ")))
    words = f"{words} ({attributes['units']})" if attributes.get("units") else words
    return f"difference in {words}" if f"{variable}_p" in data else words


def make_title(selected: xr.Dataset, suffix: str = "") -> str:
    """Return a title: the lens if there is only one, the variable, and the labels that `at` selected."""
    lenses = [str(lens) for lens in selected["lens"].values]
    variable = f"{selected.attrs['variable'].replace('_', ' ')} {suffix}".strip()
    return " · ".join(word for word in (lenses[0] if len(lenses) == 1 else "", variable, selected.attrs["at"]) if word)


def format_count(selected: xr.Dataset) -> str:
    """Return the number of examples as text, such as `n = 1,000`; empty where it is not known."""
    return f"n = {format_range(selected['n'])}" if "n" in selected else ""


def format_range(counts: Any) -> str:
    """Return one number as text, or the smallest and the largest where they differ.

    >>> import numpy as np
    >>> format_range(np.array([1000, 1000])), format_range(np.array([3, 1]))
    ('1,000', '1 to 3')
    """
    least, most = int(counts.min()), int(counts.max())
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def describe_mean(selected: xr.Dataset, dims: Sequence[str], marks: str) -> str:
    """Return a note that says what a mean is over, and what the `marks` of its interval show."""
    dimensions = [f"{selected.sizes[dim]} {dim}s" for dim in dims if selected.sizes.get(dim, 1) > 1]
    mean = f"Mean over {join_words(dimensions)}. " if dimensions else ""
    count = format_count(selected)
    if "low" not in selected:
        return f"{mean}{count} examples." if count else mean.strip()
    examples = f" over examples ({count})" if count else ""
    bound = "" if "rows" in selected or not dimensions else ", at most this wide"
    return f"{mean}{marks}: 95\N{NO-BREAK SPACE}% interval{examples}{bound}."
