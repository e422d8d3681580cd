"""Run the study dark-secrets with pretrained models on GLUE, for docs/dark_secrets.md.

One run for each model, task and seed, which may be parallel; then the related words of each model; then all results are
joined. The files in results were made on a GPU with these commands (relations on a CPU), for mrpc, stsb, sst2, rte and
qnli, with the seeds 0, 1 and 2, with the default model, all-MiniLM-L6-v2, and with `--model e5-small`:

    python ../sixteen_heads/runs/sixteen_heads.py tune rte --place GLUE --seed 1 --work WORK
    python runs/dark_secrets.py run rte --place GLUE --seed 1 --work WORK --out FOUND
    python runs/dark_secrets.py relations --treebank en_ewt-dev.conllu --out FOUND
    python runs/dark_secrets.py relations --treebank en_gum-dev.conllu --semantic --out FOUND
    python runs/dark_secrets.py join FOUND --out results

The models are tuned once for both studies: `run` takes the one that sixteen_heads.py left in WORK/models, or tunes it
itself where there is none, and tunes a randomly initialised copy with the same settings; `--without-random` leaves that
out. Of QNLI only dev is at hand, which is divided. `join --stored results` keeps what is stored of other tasks. Runs
write small files of plain arrays into FOUND, and need neither HDF5 nor any dataset library. WORK
holds every step; a stopped run is resumed from it. ../sixteen_heads/runs/on_a_gpu.py runs all of it at once.
"""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

import headscope as hs
from headscope.core.provenance import drop_attrs, read_provenance, stamp
from headscope.experiments.relation_heads import measure_relations, read_relations, show_relation
from headscope.experiments.runs import (
    TUNING,
    TUNING_BY_TASK,
    add_join,
    group_runs,
    merge_facts,
    to_single,
    widen_intervals,
    write_run,
)
from headscope.experiments.seeds import join_seeds
from headscope.experiments.steps import print_progress
from headscope.experiments.study import stamp_tasks
from headscope.experiments.tuned import TaskRun, check_runs
from headscope.results.npz import read_npz, write_npz
from headscope.training.finetuning.folder import read_stamp
from headscope.training.finetuning.settings import TrainingOptions
from headscope_studies.dark_secrets import DarkSecrets
from headscope_studies.dark_secrets.disabled import find_best
from headscope_studies.dark_secrets.measure import measure_numbers
from headscope_studies.dark_secrets.semantic import link_mentions
from headscope_studies.dark_secrets.starts import start_from_random

DEFAULT = "all-MiniLM-L6-v2"
ORDER = ("MRPC", "STS-B", "SST-2", "RTE", "QNLI")
CLASSIFIER = "cnn"
PART = "dark_secrets"  # the runs of other studies may be in the same folder
MAX_LENGTH = 128
OPTIONS = ("limit", "train_limit", "epochs", "batch_size", "learning_rate", "warmup")
SETTINGS = ("epochs", "batch_size", "learning_rate", "warmup", "max_length", "limit")
"""What decides a fine-tuning, beside its seed and its data."""

CHANGES = ("head_change", "layer_change", "pretraining_gain_change", "random_gain_change")
"""Changes of a score that have intervals of their own."""

SHARED = ("version", "weights_hash", "max_length", "classifier", "device", "dtype")
"""Facts that all runs of one model must have in common."""
COMMAND = "dark_secrets/runs/dark_secrets.py over GLUE, one run for each task and seed, joined"


def run(chosen: argparse.Namespace) -> None:
    """Study one model on one task with one seed."""
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are cut; the data table counts them
    study, planned, label = _plan(chosen)
    planned.steps.begin(planned.facts({"classifier": CLASSIFIER}))
    count = planned.train_size
    if chosen.without_random:
        planned = replace(planned, task=replace(planned.task, train=[]))
    numbers = planned.steps.keep("numbers", lambda: measure_numbers(planned, CLASSIFIER), discard="*.state")
    write_run(
        numbers,
        chosen.out / f"{label}.{chosen.task}.{chosen.seed}.{PART}.npz",
        study=study,
        base=planned.base,
        label=label,
        seed=chosen.seed,
        train=count,
        tuning=planned.tuning,
    )


def start(chosen: argparse.Namespace) -> None:
    """Tune the randomly initialised copy that `run` compares with, which does that itself where it is missing."""
    _, planned, _ = _plan(chosen, check=False)
    start_from_random(planned, 2).tuned  # noqa: B018  (it is trained, and kept in its folder)


def _plan(chosen: argparse.Namespace, *, check: bool = True) -> tuple[DarkSecrets, TaskRun, str]:
    """Return the study, what it does for one task with one seed, and the name of the model."""
    label = name_model(chosen.model)
    folder = chosen.tuned or chosen.work / "models" / f"{label}-{chosen.task}-{chosen.seed}"
    options = {**TUNING, **TUNING_BY_TASK.get(chosen.task, {})}
    options["train_limit"] = options.pop("limit", None)
    options |= {name: getattr(chosen, name) for name in OPTIONS if getattr(chosen, name) is not None}
    study = DarkSecrets(data=str(chosen.place), tasks=(chosen.task,), classifier=CLASSIFIER, **options)
    (task,), _ = study.read_tasks()
    base = hs.load(chosen.model, device=chosen.device, dtype="float32")
    out = chosen.work / "dark_secrets" / label / f"seed-{chosen.seed}"
    planned = study.plan_task(task, base, out, 1, seed=chosen.seed, device=chosen.device, progress=print_progress)
    if check and (folder / "config.json").is_file():
        check_settings(folder, planned.tuning)
        planned = replace(planned, tuned_folder=folder)
    if check:
        check_runs([planned], {"classifier": CLASSIFIER})
    return study, planned, label


def check_settings(folder: Path, tuning: TrainingOptions) -> None:
    """Stop if a model was tuned with other settings than the random copy will be: the two are compared."""
    tuned = read_stamp(folder)
    facts = tuned["facts"] if tuned else {}
    for name in (*SETTINGS, "seed"):
        if facts.get(name) != tuning.get(name):
            raise SystemExit(f"{folder} was tuned with {name}={facts.get(name)}, but here it is {tuning.get(name)}.")


def relations(chosen: argparse.Namespace) -> None:
    """Measure every head of one model, before tuning, on the related words of a treebank."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label, examples = name_model(chosen.model), read_relations(str(chosen.treebank))[: chosen.limit]
    model = hs.load(chosen.model, device=chosen.device, dtype="float32")
    examples = link_mentions(examples) if chosen.semantic else examples
    measured = measure_relations(model, examples, max_length=MAX_LENGTH, progress=True)
    facts = {
        **read_provenance(measured),
        "command": "dark_secrets/runs/dark_secrets.py relations",
        "model": label,
        "treebank": chosen.treebank.name,
        "device": model.device.type,
    }
    write_npz(stamp(measured, **facts), chosen.out / f"{label}.{'semantic' if chosen.semantic else 'relations'}.npz")
    if not chosen.semantic:
        shown = show_relation(model, read_relations(), measured, max_length=MAX_LENGTH)
        write_npz(stamp(shown, **facts), chosen.out / f"{label}.shown_relation.npz")


def name_model(model: str | None) -> str:
    """Return the name of a model: that of its folder."""
    return Path(model or DEFAULT).name


def join(chosen: argparse.Namespace) -> None:
    """Join the tasks and seeds of each model in one file, single precision; relations and their maps in others."""
    for label in sorted({path.name.partition(".")[0] for path in chosen.folder.glob(f"*.{PART}.npz")}):
        runs = [read_npz(path) for path in sorted(chosen.folder.glob(f"{label}.*.{PART}.npz"))]
        facts = merge_facts(runs, SHARED, COMMAND)
        for group in group_runs("dark_secrets_", label, runs, chosen.stored, facts):
            parts = [*group.runs, *(widen_intervals(each, CHANGES) for each in group.stored)]
            parts.sort(key=lambda each: (ORDER.index(each["task"].item()), int(each["seed"].item())))
            numbers = join_seeds([bound_best(drop_attrs(each)) for each in parts]).map(to_single)
            hs.save(stamp_tasks(numbers, **group.facts), chosen.out / f"dark_secrets_{group.name}.nc", overwrite=True)
    for part in ("relations", "semantic", "shown_relation"):
        for path in sorted(chosen.folder.glob(f"*.{part}.npz")):
            data = read_npz(path)
            name = f"dark_secrets_{path.name.removesuffix(f'.{part}.npz')}_{part}.nc"
            hs.save(data.map(to_single, keep_attrs=True).assign_attrs(data.attrs), chosen.out / name, overwrite=True)


def bound_best(numbers: xr.Dataset) -> xr.Dataset:
    """Return the numbers with the interval of the best head and layer as it is defined now."""
    one, dims = numbers.isel(task=0, seed=0), {"task": numbers["task"], "seed": numbers["seed"]}
    for kind in ("head", "layer"):
        best = find_best(one, kind, int(one["n"]), str(one["metric"].item()))
        numbers = numbers.assign(best.expand_dims(dims))
    return numbers


def main() -> None:
    """Run, measure relations, or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run", help="study one model on one task with one seed")
    starting = verbs.add_parser("start", help="tune only the randomly initialised copy for one task with one seed")
    for verb, what in ((running, run), (starting, start)):
        verb.add_argument("task", choices=[task.lower().replace("-", "") for task in ORDER])
        verb.add_argument("--place", type=Path, required=True, help="the folder of GLUE")
        verb.add_argument("--seed", type=int, default=0, help="seed of fine-tuning")
        verb.add_argument("--work", type=Path, required=True, help="where steps and tuned models are kept")
        verb.add_argument("--tuned", type=Path, help="a model that is tuned already; that in WORK/models by default")
        for name, kind in (
            ("train-limit", int),
            ("epochs", int),
            ("batch-size", int),
            ("learning-rate", float),
            ("warmup", float),
        ):
            verb.add_argument(f"--{name}", type=kind)
        verb.set_defaults(what=what)
    running.add_argument(
        "--without-random", action="store_true", help="of a model that is tuned already: train no copy to compare with"
    )
    relating = verbs.add_parser("relations", help="measure one model on the related words of a treebank")
    relating.add_argument("--treebank", type=Path, required=True, help="a CoNLL-U file, or a table of word pairs")
    relating.add_argument("--semantic", action="store_true", help="mentions of one entity in place of relations")
    relating.set_defaults(what=relations)
    for verb in (running, starting, relating):
        verb.add_argument("--model", help="a hub id or a folder; nothing: the default")
        verb.add_argument("--limit", type=int, help="number of inputs to study; all by default")
        verb.add_argument("--device", choices=("cpu", "cuda"))
    for verb in (running, relating):
        verb.add_argument("--out", type=Path, required=True, help="where the small results go")
    add_join(verbs, join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()
