"""Shares of the pattern classes before and after fine-tuning, raw and effective: the source of docs/patterns.md.

In studies/headscope_patterns, one run for each task and model (docs/runs/finetune.py fine-tunes them), then all of them
in one small file. The output of a run is named TASK-tuned-MODEL.state or TASK-base-MODEL.state:

    python runs/shares.py run rte --data GLUE --model tuned/rte-e5 --out rte-tuned-e5-small.state
    python runs/shares.py run rte --data GLUE --model e5-small --out rte-base-e5-small.state
    python runs/shares.py join *.state --out results/pattern_shares.nc

When maps were labelled since, the shares are corrected again from those of each head:

    python runs/shares.py join results/pattern_shares.nc --out results/pattern_shares.nc
"""

import argparse
import warnings
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import run_or_join
from headscope.measuring.checkpoint import read_checkpoint
from headscope.statistics.patterns import share_heads

LENSES = ("raw", "effective")
LENGTH = 128
HEADS = ("patterns", "patterns_n")


def run(options: argparse.Namespace) -> None:
    """Measure one dev set with one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # a few texts are truncated, and task heads are not used
    model, data = hs.load(options.model, dtype="float32"), hs.read(f"glue:{options.task}:dev@{options.data}")
    settings: dict[str, Any] = {"max_length": LENGTH, "limit": options.limit, "out": options.out, "resume": True}
    hs.measure(model, data, lens=list(LENSES), statistics=["patterns"], **settings)


def join(options: argparse.Namespace) -> None:
    """Join all runs along `run`, with `task`, `tuned` and `model` of each; or correct the shares of a joined file."""
    if options.paths[0].suffix == ".nc":
        (path,) = options.paths
        hs.save(_correct(hs.open_result(path)), options.out, overwrite=True)
        return
    parts, runs = [], {}
    for path in options.paths:
        name = " ".join(path.stem.split("-", 2))
        facts = read_checkpoint(path).facts
        runs[name] = {key: facts[key] for key in ("weights_hash", "data", "n", "device", "dtype")}
        parts.append(_reduce(hs.merge(path)).expand_dims(run=[name]))
    whole = xr.concat(parts, "run", data_vars="all", join="outer")
    columns = zip(*(name.split(" ", 2) for name in runs), strict=True)
    names = dict(zip(("task", "tuned", "model"), map(list, columns), strict=True))
    whole = whole.assign_coords({axis: ("run", values) for axis, values in names.items()})
    settings = {key: facts[key] for key in ("lenses", "statistics", "max_length", "units")}
    settings |= {
        "command": "studies/headscope_patterns/runs/shares.py over the dev sets of GLUE",
        "model": sorted(set(names["model"])),
        "weights_hash": {name: known["weights_hash"] for name, known in runs.items()},
        "data": {name: known["data"] for name, known in runs.items()},
        "n": sum(known["n"] for known in runs.values()),
    }
    hs.save(stamp(whole, runs=runs, **settings), options.out, overwrite=True)


def _correct(data: xr.Dataset) -> xr.Dataset:
    """Correct the shares of all runs by the errors that the classifier has now."""
    mean, n = (data[name].isel(site=0).transpose("run", "lens", "layer", "head", "pattern").values for name in HEADS)
    variance = mean * (1 - mean) / np.maximum(n - 1, 1)  # of the mean of ones and zeros
    parts = [
        [share_heads(mean[at], variance[at], str(lens), "cnn") for at in ((run, index) for run in range(len(mean)))]
        for index, lens in enumerate(data["lens"].values)
    ]
    for name in parts[0][0]:
        table = np.array([[part[name] for part in runs] for runs in parts], dtype=np.float32)  # lens run …
        dims = [dim for dim in data[name].dims if dim != "site"]
        new = xr.DataArray(table.swapaxes(0, 1), dims=dims).expand_dims("site").transpose(*data[name].dims)
        data[name] = data[name].copy(data=new.values)
    return data


def _reduce(data: xr.Dataset) -> xr.Dataset:
    """Keep the shares over heads and layers, and the mean of each head, in float32."""
    names = [name for name in data if "head" not in data[name].dims or name in HEADS]
    return data[names].drop_attrs().map(lambda values: values.astype(np.float32), keep_attrs=True)


if __name__ == "__main__":
    run_or_join(__doc__, run, join, argument="task")
