"""Shares of the pattern classes before and after fine-tuning, raw and effective: the source of docs/patterns.md.

One run for each task and model (docs/runs/finetune.py fine-tunes them), then all of them in one small file:

    python docs/runs/pattern_shares.py run rte --place GLUE --model tuned/rte-e5 --out rte-tuned-e5-small.state
    python docs/runs/pattern_shares.py run rte --place GLUE --model e5-small --out rte-base-e5-small.state
    python docs/runs/pattern_shares.py join *.state --out docs/results/pattern_shares.nc
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.measuring.checkpoint import read_checkpoint
from headscope.results.stamp import stamp

LENSES = ("raw", "effective")
LENGTH = 128


def run(options: argparse.Namespace) -> None:
    """Measure one dev set with one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # a few texts are truncated, and task heads are not used
    model, data = hs.load(options.model, dtype="float32"), hs.read(f"glue:{options.task}:dev@{options.place}")
    settings: dict[str, Any] = {"max_length": LENGTH, "limit": options.limit, "out": options.out, "resume": True}
    hs.measure(model, data, lens=list(LENSES), statistics=["patterns"], **settings)


def join(options: argparse.Namespace) -> None:
    """Join all runs along `run`, with `task`, `tuned` and `model` of each."""
    parts, runs = [], {}
    for path in options.states:
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
        "command": "docs/runs/pattern_shares.py over the dev sets of GLUE",
        "model": sorted(set(names["model"])),
        "weights_hash": {name: known["weights_hash"] for name, known in runs.items()},
        "data": {name: known["data"] for name, known in runs.items()},
        "n": sum(known["n"] for known in runs.values()),
    }
    hs.save(stamp(whole, runs=runs, **settings), options.out)


def _reduce(data: xr.Dataset) -> xr.Dataset:
    """Keep the shares over heads and layers, and the mean of each head, in float32."""
    names = [name for name in data if "head" not in data[name].dims or name in ("patterns", "patterns_n")]
    return data[names].drop_attrs().map(lambda values: values.astype(np.float32), keep_attrs=True)


def main() -> None:
    """Run or join."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands: Any = parser.add_subparsers(required=True)
    running, joining = commands.add_parser("run"), commands.add_parser("join")
    running.add_argument("task")
    running.add_argument("--place", type=Path, required=True, help="the folder with the data")
    running.add_argument("--model", help="a hub id or a folder; by default a small BERT")
    running.add_argument("--out", type=Path, required=True, help="TASK-tuned-MODEL.state or TASK-base-MODEL.state")
    running.add_argument("--limit", type=int)
    running.set_defaults(run=run)
    joining.add_argument("states", type=Path, nargs="+")
    joining.add_argument("--out", type=Path, required=True)
    joining.set_defaults(run=join)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
