"""Run the study of effective attention with pretrained models on five GLUE tasks, for docs.

One run for each model, task and seed fine-tunes and measures; `base` measures the model before tuning, which all seeds
share. Runs may be parallel. Then evaluation times, with nothing else running. Then all results are joined. The files in
results were made on a GPU with these commands, for rte, mrpc, qnli, sst2 and stsb and seeds 0 to 2, with the
default model, all-MiniLM-L6-v2, with `--model e5-small` and with `--model all-mpnet-base-v2`; times on a CPU:

    python runs/effective_attention.py base rte --place GLUE --limit 400 --work WORK
    python runs/effective_attention.py run rte --place GLUE --limit 400 --seed 1 --work WORK --out FOUND
    python runs/effective_attention.py time --place GLUE --shape --device cpu --out FOUND
    python runs/effective_attention.py join FOUND --out results
    python runs/effective_attention.py check rte --place GLUE --limit 400    # against results
    python runs/effective_attention.py retune rte --place GLUE --limit 400 --seed 1 --work WORK    # and this

Tuned weights are not stored. `retune` derives those of one model, task and seed again, with the settings below and the
seed's order of the training examples, and says how far its score and its main numbers are from the stored ones. On the
same device and versions the weights are the same, and so is their hash; elsewhere rounding makes them differ.

Without `--limit` all of dev is studied. How models are tuned is set below, and each result names it as `tuning`.

Runs write small files of plain arrays into FOUND, and need neither HDF5 nor any dataset library. WORK holds the tuned
models and every step; a stopped run is resumed from it. A run takes what `base` measured, or measures it itself. All
seeds study the same inputs; where a task has one file only, all divide it alike. With `--shape` times are those of a
network of BERT-base's shape with random weights; do that on a CPU.
"""

import argparse
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.estimate import interval_names
from headscope.core.provenance import drop_attrs, read_provenance, stamp
from headscope.experiments import summary
from headscope.experiments.pattern_shares import COUNTS, correct_patterns
from headscope.experiments.runs import merge_facts, to_single
from headscope.experiments.seeds import join_seeds
from headscope.experiments.steps import print_progress
from headscope.experiments.study import stamp_tasks
from headscope.experiments.tasks import read_glue
from headscope.experiments.tuned import TaskRun, check_runs, ignore_truncation
from headscope.results.hashes import fingerprint, fingerprint_examples
from headscope.results.npz import read_npz, write_npz
from headscope.version import __version__
from headscope_studies.effective_attention import EffectiveAttention
from headscope_studies.effective_attention.measure import (
    BATCHES,
    LENSES,
    measure_base,
    measure_maps,
    measure_numbers,
    time_model,
)
from headscope_studies.effective_attention.paper import KINDS
from headscope_studies.effective_attention.scores import score_edits

ORDER = ("RTE", "MRPC", "QNLI", "SST-2", "STS-B")
CLASSIFIER = "cnn"
OWN, RETUNING = {"classifier": CLASSIFIER}, {"retune": True}  # facts of a run, and of one that only tunes again
SHAPE = "bert-base-shape"
TOLERANCE = 1e-6  # the stored numbers are in float32
SHOWN = "RTE"  # the task whose example is shown, as in the paper
OPTIONS = ("limit", "train_limit", "epochs", "batch_size", "learning_rate", "warmup", "tuned")
TUNING: dict[str, Any] = {"epochs": 3, "batch_size": 16, "learning_rate": 5e-5, "warmup": 0.06}
"""The paper has 3 epochs too, but batches of 8 and a learning rate of 2e-5, with which models this small learn less."""

TUNING_BY_TASK: dict[str, dict[str, Any]] = {"sst2": {"epochs": 1}, "rte": {"learning_rate": 1e-4}}
"""One epoch of SST-2's 67,349 sentences is enough; small models learn little of RTE with 5e-5."""

TUNING_BY_MODEL: dict[str, dict[str, Any]] = {"all-mpnet-base-v2": {"learning_rate": 2e-5}}
"""A model of BERT-base's size takes the paper's learning rate, on every task; results has none yet."""
SHARED = ("version", "weights_hash", "max_length", "classifier", "device", "dtype")
"""Facts that all runs of one model must have in common."""

RECIPE = ("tuned_hash", "data_hash", "train", "tuning")
"""Facts that decide the numbers of a tuned model, and that say whether two runs had the same."""

RETUNED = ("sink", "entropy", "relative_change")
"""What is measured again of a model that is tuned again."""

COMMAND = "effective_attention/runs/effective_attention.py over GLUE, one run for each task and seed, joined"


def measure_one(chosen: argparse.Namespace) -> None:
    """Tune one model for one task with one seed, and study it."""
    study, run, label = plan_run(chosen, chosen.seed)
    run.steps.begin(run.facts(OWN))
    shared = _base_file(chosen, run, label)
    numbers = run.steps.keep("numbers", lambda: _tune_and_measure(run, shared), discard="*.state")
    numbers = stamp_tasks(numbers, **{**study.describe_run(run.base, []), "model": label, "seed": chosen.seed})
    numbers = numbers.expand_dims(seed=[chosen.seed], axis=1)
    base = chosen.out / f"{label}.{chosen.task}.{chosen.seed}"
    write_npz(numbers, base.with_name(f"{base.name}.numbers.npz"))
    if chosen.seed == 0:
        maps = run.steps.keep("maps", lambda: measure_maps(run, None))
        facts = {**read_provenance(numbers), "task_shown": run.task.name}
        write_npz(stamp(maps, **facts), base.with_name(f"{base.name}.maps.npz"))


def _tune_and_measure(run: TaskRun, shared: Path) -> xr.Dataset:
    """Return the numbers; those before tuning are taken from the shared file if there is one."""
    assert run.tuned is not run.base  # it is tuned here, while another process may write the shared file
    own = run.steps.folder / "base.npz"
    if shared.is_file() and not own.is_file():
        write_npz(read_npz(shared), own)
    return measure_numbers(run, CLASSIFIER)


def measure_before(chosen: argparse.Namespace) -> None:
    """Measure one model before tuning on one task."""
    _, run, label = plan_run(chosen, 0, "base")
    run.steps.begin(run.facts(OWN))
    write_npz(measure_base(run, CLASSIFIER), _base_file(chosen, run, label))


def plan_run(
    chosen: argparse.Namespace, seed: int, folder: str | None = None, own: Mapping[str, Any] = OWN
) -> tuple[EffectiveAttention, TaskRun, str]:
    """Return the study, what it does for one task with one seed, and the name of the model.

    `own` are the facts, beside those of the task, that a run must share with the one that it resumes.
    """
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are cut, as published; Table 1 counts them
    label = Path(chosen.model or "all-MiniLM-L6-v2").name
    options = {**TUNING, **TUNING_BY_TASK.get(chosen.task, {}), **TUNING_BY_MODEL.get(label, {})}
    options |= {name: getattr(chosen, name) for name in OPTIONS if getattr(chosen, name, None) is not None}
    study = EffectiveAttention(data=str(chosen.place), tasks=(chosen.task,), classifier=CLASSIFIER, **options)
    (task,), _ = study.read_tasks()
    base = hs.load(chosen.model, device=chosen.device, dtype="float32")
    out = chosen.work / label / (folder or f"seed-{seed}")
    run = study.plan_task(task, base, out, 1, seed=seed, device=chosen.device, progress=print_progress)
    check_runs([run], own)
    return study, run, label


def _base_file(chosen: argparse.Namespace, run: TaskRun, label: str) -> Path:
    """Return where the numbers before tuning are shared: a file named after all that decides them."""
    facts = (__version__, run.base.weights_hash, CLASSIFIER, str(run.max_length))
    code = fingerprint([*facts, fingerprint_examples(run.examples, labels=True)])
    return Path(chosen.work / label / f"base-{chosen.task}-{code[:12]}.npz")


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
        "command": "effective_attention/runs/effective_attention.py time",
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


def join(chosen: argparse.Namespace) -> None:
    """For each model its tasks and seeds in one file, single precision; the maps of one example; times."""
    for label in sorted({path.name.partition(".")[0] for path in chosen.folder.glob("*.numbers.npz")}):
        runs = [read_npz(path) for path in sorted(chosen.folder.glob(f"{label}.*.numbers.npz"))]
        runs = [each for each in runs if chosen.seeds is None or int(each["seed"].item()) in chosen.seeds]
        facts = merge_facts(runs, SHARED, COMMAND)
        numbers = _correct(_join_runs([drop_attrs(each) for each in runs])).map(to_single)
        numbers = stamp_tasks(numbers, **facts)
        base = chosen.out / f"effective_attention_{label}"
        hs.save(numbers, base.with_name(f"{base.name}.nc"), overwrite=True)
        shown = [read_npz(path) for path in sorted(chosen.folder.glob(f"{label}.*.maps.npz"))]
        maps = next((each for each in shown if read_provenance(each)["task_shown"] == SHOWN), shown[0])
        task = read_provenance(maps)["task_shown"]
        maps = stamp(maps.map(to_single, keep_attrs=True), **read_provenance(numbers), task_shown=task)
        hs.save(maps, base.with_name(f"{base.name}_maps.nc"), overwrite=True)
    for path in sorted(chosen.folder.glob("*.times.npz")):
        name = f"effective_attention_{path.name.removesuffix('.times.npz')}_times.nc"
        hs.save(read_npz(path), chosen.out / name, overwrite=True)


def _join_runs(runs: list[xr.Dataset]) -> xr.Dataset:
    """Join runs along `task`, in the paper's order, and `seed`."""
    return join_seeds(sorted(runs, key=lambda run: (ORDER.index(run["task"].item()), int(run["seed"].item()))))


def _correct(numbers: xr.Dataset) -> xr.Dataset:
    """Correct the shares of patterns by the labels that there are now."""
    return numbers.assign(correct_patterns(numbers[list(COUNTS)], CLASSIFIER, LENSES))


def check(chosen: argparse.Namespace) -> None:
    """Measure the base model on one task again, and compare with the stored numbers.

    On another type of device the classifier may assign a few maps to another class. Shares of patterns are therefore
    judged only on the type of device that the stored numbers come from, and where counts are stored; elsewhere their
    largest difference is reported.
    """
    with tempfile.TemporaryDirectory() as folder:
        chosen.work = Path(folder)
        _, run, label = plan_run(chosen, 0, "base")
        stored = hs.open_result(chosen.results / f"effective_attention_{label}.nc")
        stored = stored.sel(task=run.task.name, role="base").isel(seed=0)
        again = measure_base(run, CLASSIFIER).drop_vars(COUNTS)
        same = read_provenance(stored)["device"] == run.base.device.type and COUNTS[0] in stored
    failed = []
    for name in map(str, again.data_vars):
        ours, theirs = (data[name].transpose(*again[name].dims).values.astype(float) for data in (again, stored))
        assert (np.isnan(ours) == np.isnan(theirs)).all(), name
        difference = float(np.nanmax(np.abs(ours - theirs)))
        judged = same or "pattern" not in again[name].dims
        failed += [name] if judged and difference > TOLERANCE else []
        limit = f"at most {TOLERANCE:g}" if judged else "not judged: stored on another device, or without counts"
        print(f"{name:24} {difference:.1e}, {limit}")  # noqa: T201
    if failed:
        raise SystemExit(f"These differ from the stored numbers: {', '.join(failed)}.")


def retune(chosen: argparse.Namespace) -> None:
    """Tune one model again as a stored run did, and print what is the same and how far the numbers are apart."""
    _, run, label = plan_run(chosen, chosen.seed, f"retuned-{chosen.seed}", RETUNING)
    stored = hs.open_result(chosen.results / f"effective_attention_{label}.nc")
    stored = stored.sel(task=run.task.name, seed=chosen.seed, role="tuned", length="all")
    run.steps.begin(run.facts(RETUNING))
    about = run.describe()
    for name in RECIPE:
        ours, theirs = (str(data[name].item()) for data in (about, stored))
        print(f"{name:24} {'the same' if ours == theirs else f'{theirs} stored, {ours} now'}: {ours[:53]}")  # noqa: T201
    for name, (ours, theirs) in compare_retuned(run, stored).items():
        inside = "inside" if theirs[1] <= ours <= theirs[2] else "outside"
        print(  # noqa: T201
            f"{name:24} {ours:+.4f} now, {theirs[0]:+.4f} stored, {ours - theirs[0]:+.4f} apart, {inside} its interval"
        )


def compare_retuned(run: TaskRun, stored: xr.Dataset) -> dict[str, tuple[float, list[float]]]:
    """Return numbers of the tuned model, and the stored ones with their intervals."""
    with ignore_truncation():
        score = score_edits(run.tuned, run.examples, {"raw": None}, max_length=run.max_length, pad_to=run.max_length)
    rows = run.measure(run.tuned, "retuned", LENSES, RETUNED, pad_to=run.max_length)
    again = xr.merge(
        [summary.summarise_sink(rows), summary.summarise_dispersion(rows), summary.summarise_distance(rows)]
    )
    pairs = {"score": (float(score["score"].item()), _read_ends(stored.sel(lens="raw"), "score"))}
    for name in ("sink_mean", "dispersion", "distance"):
        for lens in ("raw", "effective", "paper") if name != "distance" else ("effective", "paper"):
            ours = float(again[name].sel(lens=lens))
            pairs[f"{name}, {lens}"] = (ours, _read_ends(stored.sel(lens=lens), name))
    return pairs


def _read_ends(numbers: xr.Dataset, name: str) -> list[float]:
    return [float(numbers[end]) for end in interval_names(name)]


def main() -> None:
    """Run, time, join, check or tune again."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run", help="tune and study one model for one task with one seed")
    running.add_argument("--seed", type=int, default=0, help="seed of fine-tuning")
    running.add_argument("--tuned", help="the folder of a model that is tuned already")
    for name, kind in (("train-limit", int), ("epochs", int), ("batch-size", int)):
        running.add_argument(f"--{name}", type=kind)
    for name in ("learning-rate", "warmup"):
        running.add_argument(f"--{name}", type=float)
    running.set_defaults(what=measure_one)
    before = verbs.add_parser("base", help="measure one model before tuning on one task")
    before.set_defaults(what=measure_before)
    checking = verbs.add_parser("check", help="measure one model before tuning again, and compare")
    checking.set_defaults(what=check)
    retuning = verbs.add_parser("retune", help="tune one model again for one task and seed, and compare")
    retuning.add_argument("--seed", type=int, default=0, help="seed of fine-tuning")
    retuning.set_defaults(what=retune)
    for verb in (checking, retuning):
        verb.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    for verb in (running, before, checking, retuning):
        verb.add_argument("task", choices=[task.lower().replace("-", "") for task in ORDER])
        verb.add_argument("--limit", type=int, help="number of inputs to study")
    for verb in (running, before, retuning):
        verb.add_argument("--work", type=Path, required=True, help="where steps and tuned models are kept")
    timing = verbs.add_parser("time")
    timing.add_argument("--shape", action="store_true", help="a network of BERT-base's shape instead")
    timing.set_defaults(what=clock)
    for verb in (running, before, checking, retuning, timing):
        verb.add_argument("--place", type=Path, required=True, help="the folder of GLUE")
        verb.add_argument("--model", help="a hub id or a folder; nothing: the default")
        verb.add_argument("--device", choices=("cpu", "cuda"))
    for verb in (running, timing):
        verb.add_argument("--out", type=Path, required=True, help="where the small results go")
    joining = verbs.add_parser("join", help="join the results of all runs")
    joining.add_argument("folder", type=Path)
    joining.add_argument("--out", type=Path, required=True)
    joining.add_argument("--seeds", type=int, nargs="+", help="only these; all by default")
    joining.set_defaults(what=join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()
