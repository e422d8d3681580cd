"""Probe the coreference of pretrained models, for docs/coreference.md.

One run for each model: the default, all-MiniLM-L6-v2, and `--model e5-small`. They may be parallel. Then
the results are written as results/coreference_MODEL.nc:

    python runs/coreference.py run --gum en_gum-dev.conllu --device cuda --out FOUND
    python runs/coreference.py join FOUND --out results

Runs on different data (`--sources`) may be parallel, too: give all their folders to `join`, as for results. The
page shows whatever data, attention and predictors the files have.

GAP and Winogender come with the package. Runs write small files of plain arrays into FOUND, and need no HDF5.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import xarray as xr

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.runs import add_commands, call_command, make_parser, to_single
from headscope.probes.coreference import GROUPS
from headscope.results.npz import read_npz, write_npz

DEFAULT = "all-MiniLM-L6-v2"
LENSES = ("raw", "effective", "norm")
SOURCES = {
    "GUM": ("GUM", "coreference"),
    "GUM without singletons": ("GUM", "coreference:singletons=false"),
    "GAP": ("gap:development", "coreference"),
    "Winogender": ("winogender", "coreference"),
}
"""The data and the probe, by the name in the result."""

KEPT_FACTS = ("probe", "data", "columns", "n", "n_train", "documents", "documents_train", "split")


def run(chosen: argparse.Namespace) -> None:
    """Probe one model on all data, with raw, effective and norm-based attention."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = Path(chosen.model).name if chosen.model else DEFAULT
    model = hs.load(chosen.model, device=chosen.device, dtype="float32")
    options: dict[str, Any] = {"limit": chosen.limit, "random_weights": chosen.random_weights, "progress": False}
    results, facts = [], {}
    for name in chosen.sources:
        source, probe = SOURCES[name]
        data = hs.read(str(chosen.gum) if source == "GUM" else source)
        lenses = [hs.probe(model, data, probe, lens=lens, **options) for lens in chosen.lenses]
        facts[name] = {fact: read_provenance(lenses[0])[fact] for fact in KEPT_FACTS}
        results.append(xr.concat([each.drop_attrs() for each in lenses], "lens").assign_coords(lens=chosen.lenses))
        print(f"{label}, {name}: {time.process_time():.0f} CPU seconds so far", file=sys.stderr)  # noqa: T201
    first = read_provenance(lenses[0])
    kept = {fact: first[fact] for fact in ("weights_hash", "config_hash", "device", "dtype", "query") if fact in first}
    whole = xr.concat(results, "data", join="outer").assign_coords(data=chosen.sources)
    whole = whole.sel(kind=[kind for kind in GROUPS if kind in whole["kind"].values])
    about = {
        "command": "what_heads_look_at/runs/coreference.py run",
        "model": label,
        "data": facts,
        "limit": chosen.limit,
    }
    total = sum(fact["n"] + fact["n_train"] for fact in facts.values())
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_npz(stamp(whole, **about, **kept, n=total), chosen.out / f"{label}.coreference.npz")


def join(chosen: argparse.Namespace) -> None:
    """Write the result of each model, single precision; runs on different data are joined."""
    runs: dict[str, list[xr.Dataset]] = {}
    for path in sorted(path for folder in chosen.folders for path in folder.glob("*.coreference.npz")):
        runs.setdefault(path.name.partition(".coreference")[0], []).append(read_npz(path))
    for label, parts in runs.items():
        facts = [read_provenance(part) for part in parts]
        about = {**facts[0], "data": {name: fact for each in facts for name, fact in each["data"].items()}}
        whole = xr.concat([part.drop_attrs() for part in parts], "data", join="outer")
        whole = whole.sel(
            data=[name for name in SOURCES if name in whole["data"].values],
            kind=[kind for kind in GROUPS if kind in whole["kind"].values],
        )
        result = stamp(whole, **{**about, "n": sum(fact["n"] for fact in facts)}).map(to_single, keep_attrs=True)
        hs.save(result, chosen.out / f"coreference_{label}.nc", overwrite=True)


if __name__ == "__main__":
    parser = make_parser(__doc__)
    running, joining = add_commands(parser, run=run, join=join)
    running.add_argument("--model", help="a folder or a hub id; by default the model of the package")
    running.add_argument("--gum", type=Path, required=True, help="en_gum-dev.conllu")
    running.add_argument("--device", default="cpu")
    running.add_argument("--limit", type=int, help="texts of each data set, sampled; by default all")
    running.add_argument("--sources", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    running.add_argument("--lenses", nargs="+", default=list(LENSES))
    running.add_argument("--random-weights", action=argparse.BooleanOptionalAction, default=True)
    joining.add_argument("folders", type=Path, nargs="+")
    call_command(parser)
