"""Evaluation times as ratios; it needs only what was timed, and no model."""

import xarray as xr


def ratios(times: xr.Dataset) -> xr.Dataset:
    """Every way over standard, turn by turn: the median, the least and the most."""
    turns = times["seconds"] / times["seconds"].sel(way="standard")
    return xr.Dataset({"ratio": turns.median("turn"), "ratio_low": turns.min("turn"), "ratio_high": turns.max("turn")})
