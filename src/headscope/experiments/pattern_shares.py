"""Shares of pattern classes: counted by head, and corrected for the errors of the classifier."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from headscope.core.estimate import name_ends
from headscope.experiments.summary import average
from headscope.patterns.shares import Errors, append_unsure, correct_shares, read_errors
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.intervals import Array

COUNTS = ("counted_head", "counted_cov")
"""What shares and their intervals are computed from."""

HEAD_DIMS = ("layer", "head", "lens", "pattern")
COV_DIMS = ("lens", "pattern", "other_lens", "other_pattern")


def summarise_patterns(rows: xr.Dataset, classifier: str, lenses: Mapping[str, str]) -> xr.Dataset:
    """Return counted and corrected shares of pattern classes, and what they are computed from."""
    counts = count_patterns(rows)
    return counts.merge(correct_patterns(counts, classifier, lenses))


def count_patterns(rows: xr.Dataset) -> xr.Dataset:
    """Return the share of each head's maps by class, and the covariance that inputs give the mean over heads.

    The covariance is of all lenses and classes together; NaN where there are fewer than two inputs.
    """
    table = rows["patterns_rows"].transpose("example", *HEAD_DIMS)
    coords = {dim: table[dim].values for dim in HEAD_DIMS}
    coords |= {"other_lens": coords["lens"], "other_pattern": coords["pattern"]}
    heads = np.full(table.shape[1:], np.nan)
    covariance = np.full(2 * table.shape[3:], np.nan)
    if len(table):
        heads = average(table, "example").transpose(*HEAD_DIMS).values
        means = average(table, "layer", "head").transpose("example", "lens", "pattern").values
        means = means[np.isfinite(means).all((1, 2))].reshape(-1, covariance[..., 0, 0].size)
        if len(means) > 1:
            covariance = (np.cov(means, rowvar=False) / len(means)).reshape(covariance.shape)
    return xr.Dataset({"counted_head": (HEAD_DIMS, heads), "counted_cov": (COV_DIMS, covariance)}, coords=coords)


def correct_patterns(counts: xr.Dataset, classifier: str, lenses: Mapping[str, str]) -> xr.Dataset:
    """Return `counted` and `share`, which is corrected for the errors of the classifier on maps of the same lens.

    Both have intervals that draw heads and inputs; `share_change` and `counted_change` are those from raw attention.
    `lenses` gives the spec of each lens. Counts may have further dimensions, such as task and role.
    """
    heads = counts["counted_head"].transpose(..., *HEAD_DIMS)
    lead = tuple(map(str, heads.dims[: -len(HEAD_DIMS)]))
    covariance = counts["counted_cov"].transpose(*lead, *COV_DIMS).values
    specs = [lenses[str(name)] for name in heads["lens"].values]
    shape = heads.shape[: len(lead)]
    errors = read_errors(classifier)
    parts = [_correct(heads.values[at], covariance[at], specs, classifier, errors) for at in np.ndindex(shape)]
    dims = (*lead, "lens", "pattern")
    tables = {
        name: np.stack([part[name] for part in parts]).reshape(*shape, *parts[0][name].shape) for name in parts[0]
    }
    coords = {dim: heads[dim].values for dim in dims if dim in heads.coords}
    return xr.Dataset({name: (dims, table) for name, table in tables.items()}, coords=coords)


def _correct(heads: Array, covariance: Array, lenses: list[str], classifier: str, errors: Errors) -> dict[str, Array]:
    """Return the shares of one table of heads, layer head lens pattern, each lens pattern."""
    corrected = correct_shares(heads.reshape(-1, *heads.shape[2:]), covariance, lenses, errors)
    first = lenses.index("raw")
    drawn = corrected.drawn_counts
    parts = {
        "counted": (corrected.counted, *percentile_interval(drawn)),
        "counted_change": (
            corrected.counted - corrected.counted[[first]],
            *percentile_interval(drawn - drawn[:, [first]]),
        ),
        "share": tuple(append_unsure(shares, classifier) for shares in (corrected.share, *corrected.interval())),
        "share_change": tuple(append_unsure(shares, classifier) for shares in corrected.change(first)),
    }
    return {end: table for name, tables in parts.items() for end, table in name_ends(name, tables).items()}
