"""Tables of what heads look at: lists of heads, and the published way to count."""

import pandas as pd
import xarray as xr

from headscope_studies.what_heads_look_at import surface
from headscope_studies.what_heads_look_at.no_op import GROUPS

TITLES = {"previous": "previous", "itself": "itself", "next": "next", **GROUPS}
"""Readable names of what heads look at."""


def list_table(data: xr.Dataset) -> pd.DataFrame:
    """Return the heads with more than half of their weight on each target, and the broad ones, for every lens."""
    rows = {}
    for target in surface.TARGETS[:-1]:
        rows[f"more than half on {TITLES[target]}"] = {
            str(lens): surface.describe_heads(
                surface.list_heads(data["share"].sel(lens=lens, target=target), above=surface.HALF)
            )
            for lens in data["lens"].values
        }
    rows["broad: at most 10 % on any token"] = {
        str(lens): surface.describe_heads(surface.list_heads(data["peak"].sel(lens=lens), at_most=surface.BROAD))
        for lens in data["lens"].values
    }
    return pd.DataFrame.from_dict(rows, "index").rename_axis("heads")


def clark_table(data: xr.Dataset) -> pd.DataFrame:
    """Return the mean weight over heads on each target, ours and as the published code counts (%)."""
    ours, theirs = (data[name].mean(("layer", "head")) for name in ("share", "clark"))
    rows = {
        TITLES[target]: {
            "ours (%)": 100 * float(ours.sel(lens="raw", target=target)),
            "published code (%)": 100 * float(theirs.sel(target=target)),
        }
        for target in surface.TARGETS
    }
    return pd.DataFrame.from_dict(rows, "index").rename_axis("target")


def measure_clark(data: xr.Dataset) -> float:
    """Return the largest difference between both ways to count, over heads and targets."""
    return float(abs(data["share"].sel(lens="raw") - data["clark"]).max())
