"""Measure what a projection on values that are not the model's would do: a null model for effective attention.

Run over RTE and SST-2 with pretrained weights; `pages/null_values.py` says what it shows:

    python runs/null_values.py run --data GLUE --out minilm.nc
    python runs/null_values.py run --data GLUE --model e5-small --out e5.nc
    python runs/null_values.py join minilm.nc e5.nc --out results/null_values.nc
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.estimate import with_interval
from headscope.core.example import Example
from headscope.core.provenance import stamp
from headscope.experiments import summary
from headscope.experiments.runs import join_models, run_or_join
from headscope.experiments.summary import average, summarise_by
from headscope.measuring.plan import count_tokens
from headscope.results.hashes import fingerprint_examples
from headscope.uncertainty.intervals import mean_interval

TASKS = {"RTE": None, "SST-2": 300}  # the number of inputs, the first ones; None: all
VALUES = {
    "raw": "raw",
    "effective": "effective",
    "random": "effective:values=random",
    "permuted": "effective:values=permuted",
}
STATISTICS = ("entropy", "sink", "special_tokens:reduce=max,roles=cls+sep,source=others", "relative_change")
WIDTH = 128  # to which the published code truncates


def measure_task(model: hs.Model, examples: list[Example]) -> xr.Dataset:
    """Return the quantities of one task, of all inputs and of those with more tokens than value dimensions."""
    options = {"lens": list(VALUES.values()), "statistics": list(STATISTICS), "max_length": WIDTH, "rows": True}
    rows = hs.measure(model, examples, **options, progress=False).isel(site=0).assign_coords(lens=list(VALUES))
    tokens = np.array(count_tokens(model, examples, WIDTH))
    values = hs.capture(model, examples[:1], keep=("values",), layers=0, max_length=WIDTH).values
    assert values is not None
    size = int(values[0].shape[-1])
    groups = {"all": tokens > 0, "more than d": tokens > size}
    rows = rows.sel(example=[example.id for example in examples])
    return summarise_by("length", groups, rows, summarise).assign(value_size=size)


def summarise(rows: xr.Dataset) -> xr.Dataset:
    """Return means over inputs with intervals, changes from raw, and effective minus random, input by input."""
    special = average(rows["special_tokens_rows"].sel(source="others"), "layer", "head")
    quantities = {
        "dispersion": average(rows["entropy_rows"], "layer", "head"),
        "sink": average(average(rows["sink_rows"], "head", "kind"), "layer"),
        "sep": special.sel(role="sep"),
        "cls": special.sel(role="cls"),
        "distance": average(rows["relative_change_rows"], "layer", "head"),
    }
    parts = []
    for name, values in quantities.items():
        table = values.drop_vars(("role", "source"), errors="ignore").transpose("example", "lens")
        beyond = (table.sel(lens="effective") - table.sel(lens="random", drop=True)).values
        compared = xr.Dataset(with_interval(f"{name}_beyond", (), mean_interval(beyond)))
        parts += [summary.summarise(name, table, baseline="raw"), compared]
    return xr.merge(parts)


def run(options: argparse.Namespace) -> None:
    """Run one model over both tasks."""
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are truncated, as published
    model = hs.load(options.model, device="cpu", dtype="float32")
    label = Path(options.model or "all-MiniLM-L6-v2").name
    examples = {task: hs.read(f"glue:{task}:dev@{options.data}")[: options.limit or n] for task, n in TASKS.items()}
    results = [measure_task(model, texts).expand_dims(model=[label], task=[task]) for task, texts in examples.items()]
    data = stamp(
        xr.concat([each.drop_attrs() for each in results], "task"),
        command="effective_attention/runs/null_values.py over the dev set of RTE and the first sentences of SST-2's",
        model=[label],
        weights_hash={label: model.weights_hash},
        data=fingerprint_examples(each for texts in examples.values() for each in texts),
        n=sum(map(len, examples.values())),
        lens=list(VALUES.values()),
        max_length=WIDTH,
    )
    hs.save(data, options.out, overwrite=True)


if __name__ == "__main__":
    run_or_join(__doc__, run, join_models)
