"""Compare two measured results: differences with intervals and corrected p-values."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import DataWarning, InputError, unknown_name
from headscope.core.options import takes_options
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance, stamp
from headscope.results.options import CompareOptions
from headscope.results.select import SUFFIXES, check_same_heads, main_variables, restore_axes
from headscope.results.summarize import summarize_rows
from headscope.uncertainty.corrections import CORRECTIONS, LEVEL, correct_p_values
from headscope.uncertainty.intervals import CONFIDENCE, t_quantile, t_test


@takes_options(CompareOptions)
def compare(options: CompareOptions) -> xr.Dataset:
    """Return the difference b − a of every statistic and cell that both results of `hs.measure` have.

    What only one of them has is left out, and named in a warning and in the provenance (`left_out`, `compared`).
    For each variable x: x (the difference of the means), x_low and x_high (95 % interval), x_n, x_p, x_p_adjusted
    (corrected for all cells of the variable) and x_significant. If both results have x_rows of the same data, the test
    is paired by example: Student's t of the differences, and x_sd is their standard deviation. Otherwise, or with
    `paired=False`, it is Welch's t from means, standard deviations and counts, and x_n is the smaller count;
    `paired=True` raises InputError instead.

    Compare two lenses of one result with compare(data.sel(lens="raw"), data.sel(lens="effective")).

    >>> texts = ["The cat sat down.", "It rained.", "Nobody knew why."]
    >>> data = hs.measure(model, texts, lens=["raw", "norm"], statistics=["entropy"], rows=True, progress=False)
    >>> difference = hs.compare(data.sel(lens="raw"), data.sel(lens="norm"))  # norm minus raw
    >>> difference["entropy_p_adjusted"].dims
    ('lens', 'site', 'layer', 'head')
    """
    a, b, paired, correction = options.a, options.b, options.paired, options.correction
    for data, which in ((a, "first"), (b, "second")):
        if not isinstance(data, xr.Dataset):
            raise InputError(
                f"hs.compare compares two Datasets of hs.measure, but the {which} is a {type(data).__name__}. Open a "
                "file with hs.open_result."
            )
    if correction not in CORRECTIONS:
        raise unknown_name("correction", correction, CORRECTIONS)
    names, left_out = _common_variables(a, b, options.variable)
    left, right = _match_lenses(*(_select_variables(restore_axes(data), names) for data in (a, b)))
    _check_axes(left, right, names)
    reason = _unpaired_reason(left, right, names) if paired is not False else "paired=False"
    if reason and paired:
        raise InputError(f"paired=True compares every example with itself, but {reason}.")
    if reason and paired is None:
        warnings.warn(f"Compared as if they were different examples: {reason}.", DataWarning, stacklevel=3)
    left, right, sizes = _align(left, right, by_example=not reason)
    _warn_left_out(sizes, left_out)
    _check_heads(left, right, names, a, b)
    variables: dict[str, xr.DataArray] = {}
    for name in names:
        cells = _compare_unpaired(left, right, name) if reason else _compare_paired(left, right, name)
        cells["value"].attrs.update(right[name].attrs)  # units and long_name
        adjusted = xr.apply_ufunc(lambda p: correct_p_values(p, correction), cells["p"])
        variables |= {f"{name}_{suffix}" if suffix != "value" else name: cells[suffix] for suffix in cells}
        variables |= {f"{name}_p_adjusted": adjusted, f"{name}_significant": (adjusted < LEVEL).astype(np.int8)}
    facts = {"paired": not reason, "correction": correction, "confidence": CONFIDENCE, "level": LEVEL}
    facts |= {"compared": sizes, **({"unpaired_because": reason} if reason else {})}
    facts |= {"left_out": left_out} if left_out else {}
    data = xr.Dataset(variables)
    return stamp(
        data, kind="comparison", command="headscope compare", a=read_provenance(a), b=read_provenance(b), **facts
    )


def _check_heads(left: xr.Dataset, right: xr.Dataset, names: Sequence[str], a: xr.Dataset, b: xr.Dataset) -> None:
    """Raise InputError where a lens with one map per layer is compared with one that has a map for each head."""
    first, second = (restore_axes(data)["lens"].values for data in (a, b))
    for index, label in enumerate(left["lens"].values):
        in_both = label in first and label in second
        lenses = (str(label), str(label)) if in_both else (str(first[0]), str(second[0]))
        for name in names:
            check_same_heads(left[name].isel(lens=index), right[name].isel(lens=index), lenses)


def _common_variables(a: xr.Dataset, b: xr.Dataset, variable: str | None) -> tuple[list[str], dict[str, list[str]]]:
    """Return the statistics of both results, and those of only one by the name of that result."""
    first, second = (_find_statistics(data, which) for data, which in ((a, "first"), (b, "second")))
    common = [name for name in first if name in second]
    if not common:
        raise InputError(
            f"These results cannot be compared: one holds {join_words(map(repr, first))}, the other "
            f"{join_words(map(repr, second))}, and nothing is in both. Measure both with the same statistics."
        )
    if variable is not None and variable not in common:
        raise unknown_name("variable of both results", variable, common)
    if variable is not None:
        return [variable], {}
    only = {
        "first": [name for name in first if name not in common],
        "second": [name for name in second if name not in common],
    }
    return common, {which: names for which, names in only.items() if names}


def _find_statistics(data: xr.Dataset, which: str) -> list[str]:
    """Return the variables that are means over examples; raise InputError for a result of another kind."""
    names = [str(name) for name in data.data_vars]
    statistics = [name for name in names if {f"{name}_n", f"{name}_sd"} <= set(names) and f"{name}_p" not in names]
    if not statistics:
        command = read_provenance(data).get("command")
        variables = join_words(map(repr, main_variables(data)), empty="nothing", limit=5)
        source = f"comes from {command}" if command else f"holds {variables}"
        raise InputError(
            "hs.compare compares statistics that hs.measure has averaged over examples, but the "
            f"{which} result {source}. Give two results of hs.measure."
        )
    return statistics


def _select_variables(data: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Return these variables with those that accompany them, and no axis of others."""
    return data[[own for name in names for own in (name, *(f"{name}_{end}" for end in SUFFIXES)) if own in data]]


def _check_axes(a: xr.Dataset, b: xr.Dataset, names: Sequence[str]) -> None:
    """Raise InputError for a variable with an axis in one of the results that the other lacks."""
    for name in names:
        first, second = ([str(dim) for dim in data[name].dims] for data in (a, b))
        if set(first) != set(second):
            raise InputError(
                f"'{name}' is along {join_words(first)} in the first result and {join_words(second)} in the second. "
                "Select the same of both, or compare another variable=…."
            )


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
    return left, right, sizes


def _warn_left_out(sizes: Mapping[str, Mapping[str, int]], left_out: Mapping[str, Sequence[str]]) -> None:
    """Name the statistics, and count the cells and examples, that only one of the results has."""
    counts = {dim: count_noun(n["both"], dim, "lenses" if dim == "lens" else None) for dim, n in sizes.items()}
    shortened = [f"{counts[dim]} ({n['a']} in the first, {n['b']} in the second)" for dim, n in sizes.items()]
    cells = f": {', '.join(shortened)}" if shortened else ""
    names = [f"{join_words(map(repr, names))}, only in the {which}" for which, names in left_out.items()]
    rest = f" Left out: {'; '.join(names)}." if names else ""
    if cells or rest:
        warnings.warn(f"Only what both results have is compared{cells}.{rest}", DataWarning, stacklevel=4)


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
