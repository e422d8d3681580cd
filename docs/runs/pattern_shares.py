"""Shares of the pattern classes before and after fine-tuning, raw and effective: the source of docs/patterns.md.

One run for each task and model (docs/runs/finetune.py tunes them), then all of them in one small file:

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


def run(chosen: argparse.Namespace) -> None:
    """Measure one dev set with one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # a few texts are cut, and no head of a task plays a part
    model, data = hs.load(chosen.model, dtype="float32"), hs.read(f"glue:{chosen.task}:dev@{chosen.place}")
    asked: dict[str, Any] = {"max_length": LENGTH, "limit": chosen.limit, "out": chosen.out, "resume": True}
    hs.measure(model, data, lens=list(LENSES), statistics=["patterns"], **asked)


def join(chosen: argparse.Namespace) -> None:
    """All runs along `task`, `tuned` and `model`."""
    parts, facts = [], {}
    for path in chosen.states:
        task, tuned, model = path.stem.split("-", 2)
        known = read_checkpoint(path).facts
        facts[f"{task} {tuned} {model}"] = {
            name: known[name] for name in ("weights_hash", "data", "n", "device", "dtype")
        }
        parts.append(_small(hs.merge(path)).expand_dims(run=[f"{task} {tuned} {model}"]))
    whole = xr.concat(parts, "run", data_vars="all", join="outer")
    for place, name in enumerate(("task", "tuned", "model")):
        whole = whole.assign_coords({name: ("run", [str(each).split(" ", 2)[place] for each in whole["run"].values])})
    command = "docs/runs/pattern_shares.py over the dev sets of GLUE"
    settings = {name: known[name] for name in ("lenses", "statistics", "max_length", "units")}
    settings |= {
        "model": sorted({str(each) for each in whole["model"].values}),
        "weights_hash": {name: each["weights_hash"] for name, each in facts.items()},
        "data": {name: each["data"] for name, each in facts.items()},
        "n": sum(each["n"] for each in facts.values()),
    }
    hs.save(stamp(whole, command=command, runs=facts, **settings), chosen.out)


def _small(data: xr.Dataset) -> xr.Dataset:
    """The shares over heads and layers, in single precision, and of each head its mean."""
    kept = [name for name in data if "head" not in data[name].dims or name in ("patterns", "patterns_n")]
    return data[kept].drop_attrs().map(lambda each: each.astype(np.float32), keep_attrs=True)


def main() -> None:
    """Run or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run")
    running.add_argument("task")
    running.add_argument("--place", type=Path, required=True, help="the folder with the data")
    running.add_argument("--model", help="a hub id or a folder; nothing: the default")
    running.add_argument("--out", type=Path, required=True, help="TASK-tuned-MODEL.state or TASK-base-MODEL.state")
    running.add_argument("--limit", type=int)
    running.set_defaults(what=run)
    joining = verbs.add_parser("join")
    joining.add_argument("states", type=Path, nargs="+")
    joining.add_argument("--out", type=Path, required=True)
    joining.set_defaults(what=join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()
