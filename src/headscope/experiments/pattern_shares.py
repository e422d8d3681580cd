"""Shares of pattern classes: counted, paired input by input, and corrected for the errors of the classifier."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from headscope.core.estimate import name_ends
from headscope.experiments.summary import SAME, average, summarise
from headscope.patterns.shares import Errors, append_unsure, correct_parts, read_errors, widest_interval
from headscope.uncertainty.intervals import Array

COUNTS = ("counted_part", "counted_cov", "counted_n")
"""What corrected shares and their intervals are computed from."""

PARTS = ("same", "changed")
"""Maps that equal raw's, to a thousandth of their norm, and the others."""

DIMS = ("lens", "part", "pattern")
COV_DIMS = (*DIMS, "other_lens", "other_part", "other_pattern")


def summarise_patterns(rows: xr.Dataset, classifier: str, lenses: Mapping[str, str]) -> xr.Dataset:
    """Return counted and corrected shares of pattern classes, and what the latter are computed from.

    `counted_change` is the change from raw attention input by input, over the same heads: a map that equals raw's has
    its class, so that the change of maps that are all the same is exactly 0.
    """
    parts = split_counts(rows)
    counted = summarise("counted", parts.sum("part"), baseline="raw")
    counts = count_patterns(parts)
    return xr.merge([counted.drop_vars("part", errors="ignore"), counts, correct_patterns(counts, classifier, lenses)])


def split_counts(rows: xr.Dataset) -> xr.DataArray:
    """Return for each input and lens the share of maps of each class, of those that equal raw's and of the others."""
    classes = rows["patterns_rows"].transpose("example", "lens", "pattern", "layer", "head")
    raw = classes.sel(lens=["raw"]).values
    same = find_same(rows).transpose("example", "lens", "layer", "head").values[:, :, None]
    tables = [np.where(same, raw, 0.0), np.where(same, 0.0, classes.values)]
    known = np.isfinite(classes.values)
    parts = [average(classes.copy(data=np.where(known, table, np.nan)), "layer", "head") for table in tables]
    return xr.concat(parts, "part").assign_coords(part=list(PARTS)).transpose("example", *DIMS)


def find_same(rows: xr.Dataset) -> xr.DataArray:
    """Return which maps of each lens equal raw's; without `relative_change` only those of raw attention do."""
    if "relative_change_rows" in rows:
        same = rows["relative_change_rows"] <= SAME
    else:
        same = rows["patterns_rows"].isel(pattern=0, drop=True).isnull()
    return same | (same["lens"] == "raw")


def count_patterns(parts: xr.DataArray) -> xr.Dataset:
    """Return the mean of each share over inputs, the covariance of these means, and the number of inputs.

    The covariance is of all lenses, parts and classes together; NaN where there are fewer than two inputs.
    """
    coords = {dim: parts[dim].values for dim in ("lens", "pattern")}
    shape = parts.shape[1:]
    means, covariance = np.full(shape, np.nan), np.full(2 * shape, np.nan)
    known = parts.values[np.isfinite(parts.values).all((1, 2, 3))].reshape(-1, means.size)
    if len(known):
        means = known.mean(0).reshape(shape)
    if len(known) > 1:
        covariance = (np.cov(known, rowvar=False) / len(known)).reshape(2 * shape)
    variables = {"counted_part": (DIMS, means), "counted_cov": (COV_DIMS, covariance), "counted_n": ((), len(known))}
    return xr.Dataset(variables, coords=coords)


def correct_patterns(counts: xr.Dataset, classifier: str, lenses: Mapping[str, str]) -> xr.Dataset:
    """Return `share`, corrected for the errors of the classifier, and `share_change`, its change from raw attention.

    Maps that equal raw's are corrected by the errors on raw maps, others by those on maps of their own lens; `lenses`
    gives the spec of each. Intervals draw inputs and labelled maps; heads are fixed. Counts may have further
    dimensions, such as task and role.
    """
    parts = counts["counted_part"].transpose(..., *DIMS)
    lead = tuple(map(str, parts.dims[: -len(DIMS)]))
    covariance = counts["counted_cov"].transpose(*lead, *COV_DIMS).values
    inputs = counts["counted_n"].broadcast_like(parts.isel(dict.fromkeys(DIMS, 0))).transpose(*lead).values
    names = [str(name) for name in parts["lens"].values]
    specs, first, errors = [lenses[name] for name in names], names.index("raw"), read_errors(classifier)
    shape = parts.shape[: len(lead)]
    tables = [
        _correct(parts.values[at], covariance[at], specs, classifier, errors, int(inputs[at]), first)
        for at in np.ndindex(shape)
    ]
    dims = (*lead, "lens", "pattern")
    coords = {dim: parts[dim].values for dim in dims if dim in parts.coords}
    stacked = {name: np.stack([table[name] for table in tables]) for name in tables[0]}
    variables = {name: (dims, values.reshape(*shape, *values.shape[1:])) for name, values in stacked.items()}
    return xr.Dataset(variables, coords=coords)


def _correct(
    parts: Array, covariance: Array, lenses: list[str], classifier: str, errors: Errors, inputs: int, first: int
) -> dict[str, Array]:
    """Return the shares of one table, lens part pattern, each lens pattern."""
    share, drawn = correct_parts(parts, covariance, lenses, errors, inputs, first=first)
    low, high = widest_interval(drawn)
    ends = {
        "share": (share, np.minimum(low, share), np.maximum(high, share)),
        "share_change": (share - share[[first]], *widest_interval(drawn - drawn[:, :, [first]])),
    }
    tables = {name: tuple(append_unsure(table, classifier) for table in group) for name, group in ends.items()}
    return {end: table for name, group in tables.items() for end, table in name_ends(name, group).items()}
