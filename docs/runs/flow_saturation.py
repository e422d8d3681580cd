"""Measure by depth how far maximum flow saturates and rows of rollout grow alike, on the dev sets of two GLUE tasks.

The result is the source of a figure and of numbers in docs/rollout_and_flow.md. One run for each task, model and lens,
whole or in shards, which may run at the same time; then all of them in one file. The output of a run is named
TASK-MODEL.LENS.state, or TASK-MODEL.LENS.SHARD.state:

    python docs/runs/flow_saturation.py run RTE --data GLUE --lens flow --out RTE-all-MiniLM-L6-v2.flow.state
    python docs/runs/flow_saturation.py run RTE --data GLUE --lens rollout --out RTE-all-MiniLM-L6-v2.rollout.state
    python docs/runs/flow_saturation.py run RTE --data GLUE --lens flow --model e5-small --shard 3/16 \
        --out RTE-e5-small.flow.3.state
    python docs/runs/flow_saturation.py join *.state --out docs/results/flow_saturation.nc
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import (
    add_commands,
    add_paths,
    add_run_options,
    call_command,
    make_parser,
)
from headscope.measuring.checkpoint import read_checkpoint

TASKS = ("RTE", "SST-2")
LONGEST = 128
NAMES = {"flow": ("saturation", "saturation_same"), "rollout": ("row_distance",)}
"""The variables of each lens; the first has the name of the statistic."""


def run(options: argparse.Namespace) -> None:
    """Measure one task with one model and one lens, or a shard of it."""
    warnings.simplefilter("ignore", hs.DataWarning)  # a few texts are truncated
    model, data = hs.load(options.model, dtype="float32"), hs.read(f"glue:{options.task}:dev@{options.data}")
    settings: dict[str, Any] = {"max_length": LONGEST, "limit": options.limit, "shard": options.shard, "rows": True}
    statistics, settings["lens"] = [NAMES[options.lens][0]], options.lens
    hs.measure(model, data, statistics=statistics, out=options.out, resume=True, **settings)


def join(options: argparse.Namespace) -> None:
    """Join all runs; layers are counted from 1, and a shallower model has no values in deeper layers."""
    groups: dict[tuple[str, str, str], list[Path]] = {}
    for path in options.paths:
        task = next(task for task in TASKS if path.name.startswith(f"{task}-"))
        label, lens = path.name.removeprefix(f"{task}-").split(".")[:2]
        groups.setdefault((task, label, lens), []).append(path)
    parts, hashes, data, counts = [], {}, {}, {}
    for (task, label, lens), paths in groups.items():
        merged, facts = hs.merge(*paths), read_checkpoint(paths[0]).facts
        for known, name, fact in ((hashes, label, facts["weights_hash"]), (data, task, facts["data"])):
            assert known.setdefault(name, fact) == fact, f"runs of {name} differ in their weights or texts"
        names = [f"{name}{end}" for name in NAMES[lens] for end in ("", "_low", "_high")]
        part = merged[names].isel(lens=0, site=0, head=0).reset_coords(drop=True)
        lengths = count_tokens(merged)
        counts[task] = len(lengths)
        part = part.assign(n=len(lengths), tokens=float(np.mean(lengths)))
        parts.append(part.assign_coords(layer=part["layer"] + 1).drop_attrs().expand_dims(model=[label], task=[task]))
    whole = stamp(
        xr.merge(parts, join="outer", compat="no_conflicts"),
        command="docs/runs/flow_saturation.py on the dev sets of RTE and SST-2, a run per model, task and lens, joined",
        model=sorted(hashes),
        weights_hash=hashes,
        data=data,
        n=sum(counts.values()),
        lens=sorted({lens for _, _, lens in groups}),
    )
    hs.save(whole, options.out, overwrite=True)


def count_tokens(merged: xr.Dataset) -> list[int]:
    """Return the number of tokens of each text, in the word pieces of BERT, which both models read."""
    tokenizer, pairs = hs.load().tokenizer, merged["pair"].values.tolist() if "pair" in merged.coords else None
    texts = merged["text"].values.tolist()
    return [len(ids) for ids in tokenizer(texts, pairs, truncation=True, max_length=LONGEST)["input_ids"]]


def main() -> None:
    """Run or join."""
    parser = make_parser(__doc__)
    running, joining = add_commands(parser, run=run, join=join)
    running.add_argument("task", choices=TASKS)
    add_run_options(running)
    running.add_argument("--lens", choices=sorted(NAMES), required=True, help="what is measured")
    running.add_argument("--shard", help="such as 3/16: the third of sixteen parts")
    add_paths(joining)
    call_command(parser)


if __name__ == "__main__":
    main()
