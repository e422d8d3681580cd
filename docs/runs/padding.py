"""What of the published difference between standard and effective attention is padding?

Run over the dev sets of five GLUE tasks; the result is small, stamped, and the source of docs/padding.md:

    python docs/runs/padding.py --glue GLUE --out minilm.nc
    python docs/runs/padding.py --glue GLUE --model e5-small --out e5.nc
    python docs/runs/padding.py --join minilm.nc e5.nc --out docs/results/padding.nc
"""

import argparse
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from rich.console import Console
from rich.progress import track

import headscope as hs
from headscope.results.stamp import fingerprint, read_provenance, stamp

TASKS = ("RTE", "MRPC", "QNLI", "SST-2", "STS-B")
VARIANTS = {"visible": "effective", "padded": "effective:keys=padded", "paper": "effective:keys=paper"}
WIDTH = 128  # what the published code pads and cuts to
EDGES = (0, 32, 64, 96, 128)


def observe(trace: hs.Trace) -> Iterator[dict[str, Any]]:
    """One row of numbers per example and variant, means over layers and heads."""
    raw = hs.view(trace, "raw")
    maps = {"standard": raw, **{name: hs.view(trace, lens) for name, lens in VARIANTS.items()}}
    special = torch.stack([trace.keys.special & (trace.keys.real.cumsum(-1) == 1), trace.keys.special])
    places = {"cls": special[0], "sep": special[1] & ~special[0]}
    for name, each in maps.items():
        sums = [_layer(each.layer(label), raw.layer(label), trace, places) for label in trace.layers]
        numbers = {key: torch.stack([layer[key] for layer in sums]).mean(0) for key in sums[0]}
        residual = each.diagnostics.get("residual", torch.zeros(len(trace.examples), 1, 1))
        null = each.diagnostics.get("null", torch.zeros(len(trace.examples), 1, 1))
        for row, count in enumerate(trace.keys.counts.tolist()):
            yield {
                "variant": name,
                "tokens": count,
                "same": float((null[row] == 0).float().mean()),  # heads whose effective attention is attention
                "whole": float(not null[row].any()),  # the same for all heads of the input
                "residual": float(residual[row].mean()),
                **{key: float(values[row]) for key, values in numbers.items()},
            }


def _layer(weights: torch.Tensor, standard: torch.Tensor, trace: hs.Trace, places: Any) -> dict[str, torch.Tensor]:
    """Relative change of the map, and the weight on [CLS] and on the heavier [SEP], from all other tokens."""
    change = (weights - standard).norm(dim=(-2, -1)) / standard.norm(dim=(-2, -1))
    found = {"change": change.mean(-1)}
    for name, there in places.items():
        asking = (trace.queries.real & ~there)[:, None].to(weights)
        mean = (weights * asking[..., None]).sum(-2) / asking.sum(-1, keepdim=True)  # batch head key
        found[name] = mean.masked_fill(~there[:, None], -torch.inf).amax(-1).mean(-1)
    return found


def gather(rows: list[dict[str, Any]]) -> xr.Dataset:
    """Means, spreads and counts over examples, for all lengths and by length."""
    names = ["standard", *VARIANTS]
    bins = ["all", *(f"{low + 1}–{high}" for low, high in pairwise(EDGES))]
    tokens = np.array([row["tokens"] for row in rows])
    variant = np.array([row["variant"] for row in rows])
    data: dict[str, Any] = {}
    for key in ("same", "whole", "change", "residual", "cls", "sep"):
        values = np.array([row[key] for row in rows])
        tables = np.full((2, len(bins), len(names)), np.nan)
        count = np.zeros((len(bins), len(names)), int)
        for place in range(len(bins)):
            inside = tokens > 0 if place == 0 else (tokens > EDGES[place - 1]) & (tokens <= EDGES[place])
            for column, name in enumerate(names):
                some = values[inside & (variant == name)]
                count[place, column] = len(some)
                if len(some):
                    tables[:, place, column] = some.mean(), some.std(ddof=1) if len(some) > 1 else np.nan
        data |= {key: (("length", "variant"), tables[0]), f"{key}_sd": (("length", "variant"), tables[1])}
    data["n"] = ("length", count[:, 0])
    return xr.Dataset(data, coords={"length": bins, "variant": names})


def joined(parts: list[xr.Dataset]) -> xr.Dataset:
    """Runs of different models over the same data as one result, which says that it was joined."""
    facts = [read_provenance(each) for each in parts]
    if len({(each["data"], each["n"]) for each in facts}) > 1:
        raise SystemExit("These runs are over different data.")
    together = {
        "command": f"{facts[0]['command']}, one run for each model, joined",
        "model": sorted(name for each in facts for name in each["model"]),
        "weights_hash": {name: code for each in facts for name, code in each["weights_hash"].items()},
    }
    return stamp(xr.concat([each.drop_attrs() for each in parts], "model"), **{**facts[0], **together})


def main() -> None:
    """Run every model over every task, or join such runs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = options.add_mutually_exclusive_group(required=True)
    what.add_argument("--glue", type=Path, help="the folder with a folder for each task")
    what.add_argument("--join", type=Path, nargs="+", help="results of this script, one for each model")
    options.add_argument("--model", action="append", default=[], help="a hub id or a folder; nothing: the default")
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--limit", type=int)
    options.add_argument("--batch", type=int, default=16)
    chosen = options.parse_args()
    if chosen.join:
        hs.save(joined([hs.open_result(path) for path in chosen.join]), chosen.out)
        return
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are cut, as published
    console, results, hashes = Console(stderr=True), [], {}
    texts = {task: hs.read(f"glue:{task}:dev@{chosen.glue}")[: chosen.limit] for task in TASKS}
    for name in chosen.model or [None]:
        model = hs.load(name)
        label = Path(model.spec).name
        hashes[label] = model.weights_hash
        for task, examples in texts.items():
            stream = hs.stream(
                model, examples, batch_size=chosen.batch, keep=("values", "pads"), max_length=WIDTH, pad_to=WIDTH
            )
            total = -(-len(examples) // chosen.batch)
            rows = [
                row
                for trace in track(stream, f"{label} {task}", total=total, console=console)
                for row in observe(trace)
            ]
            results.append(gather(rows).expand_dims(model=[label], task=[task]))
    data = xr.combine_by_coords(results)
    every = [text for task in texts.values() for each in task for text in (each.text, each.pair or "")]
    command = "docs/runs/padding.py over the dev sets of five GLUE tasks"
    facts = {"command": command, "model": sorted(hashes), "weights_hash": hashes, "data": fingerprint(every)}
    hs.save(stamp(data, **facts, n=sum(map(len, texts.values())), lens=list(VARIANTS.values())), chosen.out)


if __name__ == "__main__":
    main()
