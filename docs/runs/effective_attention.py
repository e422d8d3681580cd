"""Run the study of effective attention with both pretrained models on five GLUE tasks, for docs/effective_attention.md.

One run for each task and model fine-tunes and measures; runs may be parallel. Then evaluation times, one model after
another and with nothing else running. Then all results are joined in a few files:

    python docs/runs/effective_attention.py run rte --place GLUE --model e5-small --work WORK --out FOUND
    python docs/runs/effective_attention.py time --place GLUE --model e5-small --out FOUND
    python docs/runs/effective_attention.py time --place GLUE --shape --out FOUND
    python docs/runs/effective_attention.py join FOUND --out docs/results
    python docs/runs/effective_attention.py check rte --place GLUE    # numbers before tuning, against docs/results

Runs write small files of plain arrays into FOUND, and need neither HDF5 nor any dataset library. WORK holds the tuned
model and every step; a stopped run is resumed from it. Times are those of the model before tuning: tuning changes
weights, not how much is computed. With `--shape` they are those of a network of BERT-base's shape with random weights;
do that on a GPU and on a CPU.
"""

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.experiments.steps import print_progress
from headscope.experiments.study import stamp_tasks
from headscope.experiments.summary import group_lengths
from headscope.experiments.tasks import read_glue
from headscope.results.npz import read_npz, write_npz
from headscope.results.stamp import fingerprint_examples, read_provenance, stamp
from headscope.studies.effective_attention import EffectiveAttention
from headscope.studies.effective_attention.measure import BATCHES, LENSES, STATISTICS, summarise_role, time_model
from headscope.studies.effective_attention.paper import KINDS

PARTS = ("numbers", "maps")
ORDER = ("RTE", "MRPC", "QNLI", "SST-2", "STS-B")
SHAPE = "bert-base-shape"
TOLERANCE = 1e-6  # the stored numbers are in float32
SHOWN = "RTE"  # the task whose example is shown, as in the paper


def run(chosen: argparse.Namespace) -> None:
    """Tune one model for one task, and study it."""
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are cut, as published; Table 1 counts them
    given = ("limit", "train_limit", "epochs", "batch_size", "learning_rate", "warmup", "tuned")
    options = {name: getattr(chosen, name) for name in given if getattr(chosen, name) is not None}
    study = EffectiveAttention(data=str(chosen.place), tasks=(chosen.task,), **options)
    label = Path(chosen.model or "all-MiniLM-L6-v2").name
    results = study.run(chosen.model, chosen.work / label, device=chosen.device, progress=print_progress)
    for part in PARTS:
        write_npz(_named(results[part], label), chosen.out / f"{label}.{chosen.task}.{part}.npz")


def clock(chosen: argparse.Namespace) -> None:
    """Time one model's evaluation on the texts of every task."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = Path(chosen.model or "all-MiniLM-L6-v2").name
    model = hs.load(chosen.model, dtype="float32", device=chosen.device)
    if chosen.shape:
        model, label = _of_shape(model), f"{SHAPE}_{model.device.type}"
    tasks, _ = read_glue(str(chosen.place), (), KINDS)
    sizes = BATCHES.get(model.device.type, BATCHES["cpu"])
    every = [time_model(model, task.dev, 128).expand_dims(task=[task.name]) for task in tasks]
    results = xr.concat(every, "task", combine_attrs="override")
    facts = {
        "command": "docs/runs/effective_attention.py time",
        "model": label,
        "weights_hash": model.weights_hash,
        "data": {task.name: fingerprint_examples(task.dev[: max(sizes)], labels=True) for task in tasks},
        "n": max(sizes) * len(tasks),
    }
    write_npz(stamp(results, **facts), chosen.out / f"{label}.times.npz")


def _of_shape(model: hs.Model) -> hs.Model:
    """A network of BERT-base's shape that reads as the model does, with random weights."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    network = BertModel(BertConfig(vocab_size=len(model.tokenizer)))
    return hs.load(network.to(model.device).eval(), tokenizer=model.tokenizer)


def _named(data: xr.Dataset, label: str) -> xr.Dataset:
    """The model by its name, without the folder it lay in."""
    return stamp(data, model=label)


def join(chosen: argparse.Namespace) -> None:
    """For each model its tasks in one file, single precision; its times in another, and the maps of one example."""
    labels = sorted({path.name.partition(".")[0] for path in chosen.folder.glob("*.numbers.npz")})
    for label in labels:
        parts = {part: _read(chosen.folder, label, part) for part in PARTS}
        tasks = [task for task in ORDER if task in parts["numbers"]]
        first = read_provenance(parts["numbers"][tasks[0]])
        first.pop("options")  # those of a task stand in its `tuning`
        facts = {**first, "command": "docs/runs/effective_attention.py over GLUE, one run for each task, joined"}
        every = [parts["numbers"][task].drop_attrs() for task in tasks]
        joined = xr.concat(every, "task", join="outer", data_vars="all", combine_attrs="override")
        numbers = stamp_tasks(joined, **facts).map(_single, keep_attrs=True)
        facts = read_provenance(numbers)
        shown = parts["maps"][SHOWN if SHOWN in parts["maps"] else tasks[0]]
        base = chosen.out / f"effective_attention_{label}"
        hs.save(numbers, base.with_name(f"{base.name}.nc"), overwrite=True)
        shown = stamp(shown.map(_single, keep_attrs=True), **facts, task_shown=SHOWN if SHOWN in tasks else tasks[0])
        hs.save(shown, base.with_name(f"{base.name}_maps.nc"), overwrite=True)
        hs.save(read_npz(chosen.folder / f"{label}.times.npz"), base.with_name(f"{base.name}_times.nc"), overwrite=True)
    for path in sorted(chosen.folder.glob(f"{SHAPE}_*.times.npz")):
        label = path.name.removesuffix(".times.npz")
        hs.save(read_npz(path), chosen.out / f"effective_attention_{label}_times.nc", overwrite=True)


def _read(folder: Path, label: str, part: str) -> dict[str, xr.Dataset]:
    """The part of every task's run."""
    results = {}
    for path in sorted(folder.glob(f"{label}.*.{part}.npz")):
        task = str(read_npz(path.with_name(path.name.replace(part, "numbers")))["task"].values[0])
        results[task] = read_npz(path)
    return results


def _single(each: xr.DataArray) -> xr.DataArray:
    return each.astype(np.float32) if each.dtype == np.float64 else each


def check(chosen: argparse.Namespace) -> None:
    """Measure the base model on one task again, and compare with the stored numbers.

    On another type of device the classifier may assign a few maps to another class. Shares of patterns are therefore
    judged only on the type of device that the stored numbers come from; elsewhere their largest difference is reported.
    """
    warnings.simplefilter("ignore", hs.DataWarning)
    label = Path(chosen.model or "all-MiniLM-L6-v2").name
    study = EffectiveAttention(data=str(chosen.place), tasks=(chosen.task,), limit=chosen.limit)
    (task,), _ = study.read_tasks()
    stored = hs.open_result(chosen.results / f"effective_attention_{label}.nc").sel(task=task.name, role="base")
    with tempfile.TemporaryDirectory() as folder:
        base = hs.load(chosen.model, device=chosen.device, dtype="float32")
        run = study.plan_task(task, base, Path(folder), 1, progress=print_progress)
        statistics = ("patterns:classifier=cnn", *STATISTICS)
        rows = run.measure(base, "base", LENSES, statistics, pad_to=run.max_length).sel(example=run.lengths["example"])
    same_device = read_provenance(stored)["device"] == base.device.type
    groups = group_lengths(run.lengths["tokens"].values, int(run.lengths["value_size"]), run.max_length)
    again = summarise_role(rows, groups, "cnn")
    failed = []
    for name in map(str, again.data_vars):
        ours, theirs = (data[name].transpose(*again[name].dims).values.astype(float) for data in (again, stored))
        assert (np.isnan(ours) == np.isnan(theirs)).all(), name
        difference = float(np.nanmax(np.abs(ours - theirs)))
        judged = same_device or "pattern" not in again[name].dims
        failed += [name] if judged and difference > TOLERANCE else []
        limit = f"at most {TOLERANCE:g}" if judged else "not judged: stored on another type of device"
        print(f"{name:24} {difference:.1e}, {limit}")  # noqa: T201
    if failed:
        raise SystemExit(f"These differ from the stored numbers: {', '.join(failed)}.")


def main() -> None:
    """Run, time, join or check."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run")
    running.add_argument("task", choices=[task.lower().replace("-", "") for task in ORDER])
    running.add_argument("--place", type=Path, required=True, help="the folder of GLUE")
    running.add_argument("--model", help="a hub id or a folder; nothing: the default")
    running.add_argument("--work", type=Path, required=True, help="where steps and tuned models are kept")
    running.add_argument("--out", type=Path, required=True, help="where the small results go")
    running.add_argument("--tuned", help="the folder of a model that is tuned already")
    running.add_argument("--device", choices=("cpu", "cuda"))
    for name, kind in (("limit", int), ("train-limit", int), ("epochs", int), ("batch-size", int)):
        running.add_argument(f"--{name}", type=kind)
    for name in ("learning-rate", "warmup"):
        running.add_argument(f"--{name}", type=float)
    running.set_defaults(what=run)
    timing = verbs.add_parser("time")
    timing.add_argument("--place", type=Path, required=True, help="the folder of GLUE")
    timing.add_argument("--model", help="a hub id or a folder; nothing: the default")
    timing.add_argument("--shape", action="store_true", help="a network of BERT-base's shape instead")
    timing.add_argument("--out", type=Path, required=True, help="where the small results go")
    timing.add_argument("--device", choices=("cpu", "cuda"))
    timing.set_defaults(what=clock)
    joining = verbs.add_parser("join")
    joining.add_argument("folder", type=Path)
    joining.add_argument("--out", type=Path, required=True)
    joining.set_defaults(what=join)
    checking = verbs.add_parser("check")
    checking.add_argument("task", choices=[task.lower().replace("-", "") for task in ORDER])
    checking.add_argument("--place", type=Path, required=True, help="the folder of GLUE")
    checking.add_argument("--model", help="a hub id or a folder; nothing: the default")
    checking.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    checking.add_argument("--limit", type=int)
    checking.add_argument("--device", choices=("cpu", "cuda"))
    checking.set_defaults(what=check)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()
