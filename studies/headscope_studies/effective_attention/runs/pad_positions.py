"""Measure effective attention with padding whose positions are distinct, as in BERT, and with a model's own.

MPNet and RoBERTa give all padding one position, so that its rows of V are nearly equal; BERT gives every token of
padding its own. Run over a random sample of each task with pretrained weights:

    python runs/pad_positions.py run --data GLUE --model all-mpnet-base-v2 --limit 100 --work WORK --out OUT

With `--seed` the model is tuned first, as `runs/effective_attention.py` tunes it; `--tasks` names those of one process,
and `join` joins their files.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.example import Example, sample_examples
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments import summary
from headscope.experiments.runs import add_commands, add_paths, call_command, make_parser
from headscope.experiments.summary import average, summarise_by
from headscope.measuring.plan import count_tokens
from headscope.results.hashes import fingerprint, fingerprint_examples
from headscope.results.npz import read_npz, write_npz
from headscope_studies.effective_attention.measure import LENSES
from headscope_studies.effective_attention.runs.effective_attention import ORDER, plan_run

STATISTICS = ("relative_change", "sink", "special_tokens:reduce=max,roles=cls+sep,source=others")
PADDED = ("padded", "paper")  # the attentions that padding takes part in
WIDTH = 128  # to which the published code pads and truncates
BATCH_SIZE = 8  # the paper's; the published code has one rank for each batch


def measure_task(model: hs.Model, examples: list[Example], folder: Path, width: int = WIDTH) -> xr.Dataset:
    """Return each quantity with the model's own positions of padding, and with distinct ones."""
    shared: dict[str, Any] = {"max_length": width, "pad_to": width, "rows": True, "batch_size": BATCH_SIZE}
    shared |= {"statistics": list(STATISTICS), "resume": True, "progress": False}
    parts = []
    for positions, names in (("model", list(LENSES)), ("distinct", ["raw", *PADDED])):
        lenses = [LENSES[name] for name in names]
        out = folder / f"{positions}.state"
        rows = hs.measure(model, examples, lens=lenses, pad_positions=positions, out=out, **shared)
        labels = names if positions == "model" else [name_distinct(name) for name in names]
        parts.append(rows.isel(site=0).assign_coords(lens=labels).drop_attrs())
    rows = xr.concat(parts, "lens").sel(example=[example.id for example in examples])
    tokens, size = np.array(count_tokens(model, examples, width)), find_value_size(model, examples[0], width)
    groups = {"all": tokens > 0, "at most d": tokens <= size, "more than d": tokens > size}
    return summarise_by("length", groups, rows, summarise).assign(value_size=size)


def name_distinct(name: str) -> str:
    """Return the label of an attention with distinct positions of padding."""
    return f"{name}, distinct"


def find_value_size(model: hs.Model, example: Example, width: int) -> int:
    """Return the number of value dimensions of a head."""
    values = hs.capture(model, [example], keep=("values",), layers=0, max_length=width).values
    assert values is not None
    return int(values[0].shape[-1])


def summarise(rows: xr.Dataset) -> xr.Dataset:
    """Return the relative change of attention, the sink, [SEP] and [CLS]: means over inputs, and changes from raw."""
    special = average(rows["special_tokens_rows"].sel(source="others"), "layer", "head")
    quantities = {
        "distance": average(rows["relative_change_rows"], "layer", "head"),
        "sink": average(average(rows["sink_rows"], "head", "kind"), "layer"),
        **{role: special.sel(role=role).drop_vars(("role", "source"), errors="ignore") for role in ("sep", "cls")},
    }
    parts = [summary.summarise(name, table, baseline="raw") for name, table in quantities.items()]
    return xr.merge(parts)


def run(options: argparse.Namespace) -> None:
    """Measure one model on a sample of every task."""
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are truncated, as published
    base, results, examples = hs.load(options.model, device=options.device, dtype="float32"), [], []
    for task in options.tasks:
        model, texts = base, sample_examples(hs.read(f"glue:{task}:dev@{options.data}"), options.limit, 0)
        if options.seed is not None:
            model, texts = tune(options, task)
        folder = options.work / task
        folder.mkdir(parents=True, exist_ok=True)
        measured = measure_task(model, texts, folder).assign(tuned_hash=model.weights_hash)
        results.append(measured.expand_dims(task=[task]))
        examples += texts
    tuned = "" if options.seed is None else f" --seed {options.seed}"
    data = stamp(
        xr.concat(results, "task"),
        command=f"effective_attention/runs/pad_positions.py run --limit {options.limit}{tuned} over dev of GLUE tasks",
        model=Path(options.model).name,
        weights_hash=base.weights_hash,
        data=fingerprint_examples(examples),
        n=len(examples),
        lens=list(LENSES.values()),
        max_length=WIDTH,
        pad_positions=["model", "distinct"],
    )
    if options.out.suffix == ".npz":
        write_npz(data, options.out)
    else:
        hs.save(data, options.out, overwrite=True)


def tune(options: argparse.Namespace, task: str) -> tuple[hs.Model, list[Example]]:
    """Tune the model for one task, and return it with the inputs to study."""
    chosen = argparse.Namespace(**{**vars(options), "task": task.lower().replace("-", ""), "place": options.data})
    _, run, _ = plan_run(chosen, options.seed)
    return run.tuned, run.examples


def join(options: argparse.Namespace) -> None:
    """Join the files of several processes along `task`."""
    parts = [read_npz(path) for path in options.paths]
    parts.sort(key=lambda part: ORDER.index(str(part["task"].values[0])))
    facts = [read_provenance(part) for part in parts]
    joined = {"n": sum(fact["n"] for fact in facts), "data": fingerprint(str(fact["data"]) for fact in facts)}
    hs.save(stamp(xr.concat(parts, "task"), **{**facts[0], **joined}), options.out, overwrite=True)


def main() -> None:
    """Read the command line, and run or join."""
    parser = make_parser(__doc__)
    running, joining = add_commands(parser, run=run, join=join)
    running.add_argument("--data", type=Path, required=True, help="the folder of GLUE")
    running.add_argument("--model", required=True, help="a hub id or a folder")
    running.add_argument("--limit", type=int, help="number of inputs of each task, a random sample")
    running.add_argument("--tasks", nargs="+", choices=ORDER, default=ORDER)
    running.add_argument("--seed", type=int, help="tune the model first, with this seed")
    running.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    running.add_argument("--work", type=Path, required=True, help="where a stopped run is resumed from")
    add_paths(joining)
    call_command(parser)


if __name__ == "__main__":
    main()
