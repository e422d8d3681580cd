"""Measure how much of the published difference between raw and effective attention is padding.

Run over the dev sets of five GLUE tasks; the result is the source of docs/padding.md:

    python docs/runs/padding.py run --data GLUE --out minilm.nc
    python docs/runs/padding.py run --data GLUE --model e5-small --out e5.nc
    python docs/runs/padding.py join minilm.nc e5.nc --out docs/results/padding.nc
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
from headscope.core.provenance import stamp
from headscope.experiments.runs import join_models, run_or_join
from headscope.results.hashes import fingerprint

TASKS = ("RTE", "MRPC", "QNLI", "SST-2", "STS-B")
ATTENTIONS = {
    "raw": "raw",
    "effective": "effective",
    "padded": "effective:keys=padded",
    "paper": "effective:keys=paper",
}
WIDTH = 128  # to which the published code pads and truncates
EDGES = (0, 32, 64, 96, 128)
BATCH_SIZE = 16
QUANTITIES = ("same", "whole", "change", "residual", "cls", "sep")


def observe(trace: hs.Trace) -> Iterator[dict[str, Any]]:
    """Yield one row per example and attention, with means over layers and heads."""
    maps = {name: hs.view(trace, lens) for name, lens in ATTENTIONS.items()}
    first = trace.keys.special & (trace.keys.real.cumsum(-1) == 1)
    special = {"cls": first, "sep": trace.keys.special & ~first}
    none = torch.zeros(len(trace.examples), 1, 1)
    for name, stack in maps.items():
        layers = [
            _observe_layer(stack.layer(label), maps["raw"].layer(label), trace, special) for label in trace.layers
        ]
        means = {key: torch.stack([layer[key] for layer in layers]).mean(0) for key in layers[0]}
        residual, null = (stack.diagnostics.get(key, none) for key in ("residual", "null"))
        for row, count in enumerate(trace.keys.counts.tolist()):
            yield {
                "attention": name,
                "tokens": count,
                "same": float((null[row] == 0).float().mean()),  # share of heads without a null space
                "whole": float(not null[row].any()),  # no head of the example has one
                "residual": float(residual[row].mean()),
                **{key: float(values[row]) for key, values in means.items()},
            }


def _observe_layer(
    weights: torch.Tensor, raw: torch.Tensor, trace: hs.Trace, special: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the relative change of the map, and the weight on [CLS] and on the heavier [SEP] from all other tokens."""
    values = {"change": ((weights - raw).norm(dim=(-2, -1)) / raw.norm(dim=(-2, -1))).mean(-1)}
    for name, mask in special.items():
        queries = (trace.queries.real & ~mask)[:, None].to(weights)
        mean = (weights * queries[..., None]).sum(-2) / queries.sum(-1, keepdim=True)  # batch head key
        values[name] = mean.masked_fill(~mask[:, None], -torch.inf).amax(-1).mean(-1)
    return values


def summarise(rows: list[dict[str, Any]]) -> xr.Dataset:
    """Return means, standard deviations and counts over examples, for all lengths and by length."""
    bins = ["all", *(f"{low + 1}–{high}" for low, high in pairwise(EDGES))]
    columns = {key: np.array([row[key] for row in rows]) for key in ("tokens", "attention", *QUANTITIES)}
    tokens = columns["tokens"]
    selections = [tokens > 0, *((tokens > low) & (tokens <= high) for low, high in pairwise(EDGES))]
    data: dict[str, Any] = {}
    for key in QUANTITIES:
        tables = np.full((2, len(bins), len(ATTENTIONS)), np.nan)
        counts = np.zeros((len(bins), len(ATTENTIONS)), int)
        for row, selected in enumerate(selections):
            for column, name in enumerate(ATTENTIONS):
                values = columns[key][selected & (columns["attention"] == name)]
                counts[row, column] = len(values)
                if len(values):
                    tables[:, row, column] = values.mean(), values.std(ddof=1) if len(values) > 1 else np.nan
        data |= {key: (("length", "attention"), tables[0]), f"{key}_sd": (("length", "attention"), tables[1])}
    data["n"] = ("length", counts[:, 0])
    return xr.Dataset(data, coords={"length": bins, "attention": list(ATTENTIONS)})


def run(options: argparse.Namespace) -> None:
    """Run one model over all tasks."""
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are truncated, as published
    examples = {task: hs.read(f"glue:{task}:dev@{options.data}")[: options.limit] for task in TASKS}
    model = hs.load(options.model)
    label, results = Path(model.spec).name, []
    for task, texts in examples.items():
        stream = hs.stream(model, texts, batch_size=BATCH_SIZE, keep=("values", "pads"), max_length=WIDTH, pad_to=WIDTH)
        batches = track(stream, task, total=-(-len(texts) // BATCH_SIZE), console=Console(stderr=True))
        rows = [row for trace in batches for row in observe(trace)]
        results.append(summarise(rows).expand_dims(model=[label], task=[task]))
    texts = [text for task in examples.values() for each in task for text in (each.text, each.pair or "")]
    data = stamp(
        xr.combine_by_coords(results),
        command="docs/runs/padding.py over the dev sets of five GLUE tasks",
        model=[label],
        weights_hash={label: model.weights_hash},
        data=fingerprint(texts),
        n=sum(map(len, examples.values())),
        lens=list(ATTENTIONS.values()),
    )
    hs.save(data, options.out, overwrite=True)


if __name__ == "__main__":
    run_or_join(__doc__, run, join_models)
