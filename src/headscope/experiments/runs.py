"""The command line of scripts that are run once per model and dataset, and then join all runs into one file."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.estimate import interval_names
from headscope.core.progress import print_status
from headscope.core.provenance import read_provenance, stamp
from headscope.engine.model import Model
from headscope.experiments.study import TaskStudy, stamp_tasks
from headscope.experiments.tuned import describe_tuning
from headscope.results.npz import write_npz
from headscope.training.finetuning.settings import TrainingOptions
from headscope.uncertainty.paired import least_margin

TUNING: dict[str, Any] = {"epochs": 3, "batch_size": 16, "learning_rate": 5e-5, "warmup": 0.06}
"""How small models are tuned on GLUE; they learn less with the learning rate of most papers, 2e-5."""

TUNING_BY_TASK: dict[str, dict[str, Any]] = {
    "sst2": {"batch_size": 64, "learning_rate": 1e-4},
    "rte": {"learning_rate": 1e-4},
}
"""Of the many short sentences of SST-2 a step takes more; small models learn little of RTE with 5e-5."""

Command = Callable[[argparse.Namespace], None]


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints the docstring of a script as it is."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_commands(parser: argparse.ArgumentParser, **functions: Command) -> list[argparse.ArgumentParser]:
    """Add a command with the option --out for every function; `call_command` calls the one that is asked for."""
    subparsers = parser.add_subparsers(required=True)
    commands = [subparsers.add_parser(name) for name in functions]
    for command, function in zip(commands, functions.values(), strict=True):
        command.add_argument("--out", type=Path, required=True, help="output path")
        command.set_defaults(command=function)
    return commands


def call_command(parser: argparse.ArgumentParser) -> None:
    """Parse the command line, and call the function of its command with the options."""
    options = parser.parse_args()
    options.command(options)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of one run."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the data")
    parser.add_argument("--model", help="a hub id or a folder; default: a small BERT")
    parser.add_argument("--limit", type=int, help="number of examples")


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add the argument of a command that joins all runs into one file."""
    parser.add_argument("paths", type=Path, nargs="+", help="files of the runs")


def run_or_join(
    description: str | None,
    run: Command,
    join: Command,
    *,
    argument: str | None = None,  # of `run`
    choices: Iterable[str] | None = None,  # of that argument
    settings: Iterable[str] | None = None,  # choices of --settings; the first is the default
) -> None:
    """Parse the command line, and call `run` or `join` with its options."""
    parser = make_parser(description)
    running, joining = add_commands(parser, run=run, join=join)
    if argument is not None:
        running.add_argument(argument, choices=choices)
    add_run_options(running)
    if settings is not None:
        running.add_argument("--settings", choices=settings, default=next(iter(settings)))
    add_paths(joining)
    call_command(parser)


def add_join(commands: Any, join: Command) -> None:
    """Add the command `join` with the folder of all runs and --out."""
    command = commands.add_parser("join", help="join the results of all runs")
    command.add_argument("folder", type=Path)
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--stored", type=Path, help="results of an earlier run, of which other tasks are kept")
    command.set_defaults(what=join)


def merge_facts(runs: Sequence[xr.Dataset], shared: Iterable[str], command: str) -> dict[str, Any]:
    """Return the provenance of runs of one model, which must agree in the `shared` facts, under a new command."""
    facts = [read_provenance(run) for run in runs]
    for name in shared:
        if len(values := {str(fact.get(name)) for fact in facts}) > 1:
            raise SystemExit(f"These runs of one model differ in {name}: {', '.join(sorted(values))}.")
    first = {name: value for name, value in facts[0].items() if name != "options"}  # `tuning` has those of each task
    return {**first, "command": command}


def write_run(
    numbers: xr.Dataset,
    path: Path,
    *,
    study: TaskStudy,
    base: Model,
    label: str,
    seed: int,
    train: int,
    tuning: TrainingOptions,
) -> None:
    """Write the numbers of one task with one seed, with how many examples the model learned from, and how."""
    numbers = numbers.assign(train=("task", [train]), tuning=("task", [describe_tuning(tuning)]))
    facts = {**study.describe_run(base, []), "model": label, "seed": seed}
    write_npz(stamp_tasks(numbers, **facts).expand_dims(seed=[seed], axis=1), path)


@dataclass(frozen=True)
class SeedGroup:
    """The runs of one model on all tasks with the same seeds, which are joined in one file."""

    name: str  # of the model, and of how many seeds there are where others have more
    runs: list[xr.Dataset]
    stored: list[xr.Dataset]  # of an earlier run
    facts: dict[str, Any]


def group_runs(
    stem: str, label: str, runs: Sequence[xr.Dataset], stored: Path | None, facts: dict[str, Any]
) -> Iterator[SeedGroup]:
    """Yield the runs of a model by their seeds: results can be joined only along seeds that all tasks have.

    A group has what files of the folder `stored` have on other tasks, with the same seeds. Files that lose a task to
    these runs, and get none, are a group too.

    Parameters
    ----------
    stem
        How the names of the files begin.
    label
        The name of the model.
    runs
        New results, of one task and one seed each.
    stored
        The folder of an earlier run.
    facts
        The provenance of the new results.
    """
    groups, joined = _group_seeds(runs), {str(run["task"].item()) for run in runs}
    files = {} if stored is None else _read_stored(stored, f"{stem}{label}")
    known = {seed for seeds in (*groups, *files) for seed in seeds}
    sizes = [len(seeds) for seeds in {*groups, *files}]
    if len(set(sizes)) < len(sizes):
        listed = "; ".join(", ".join(map(str, seeds)) for seeds in (*groups, *files))
        raise SystemExit(
            f"Tasks of {label} have as many seeds, but others: {listed}. Their files would have one name. Run all "
            "tasks with the same seeds, or with another number of them."
        )
    for seeds in dict.fromkeys((*groups, *files)):
        new, earlier = groups.get(seeds, []), files.get(seeds)
        tasks = [] if earlier is None else [str(task) for task in earlier["task"].values]
        kept = [task for task in tasks if task not in joined]
        if not new and kept == tasks:
            continue  # as it was
        if not new and not kept:
            print_status(
                f"All tasks of {label} with seeds {', '.join(map(str, seeds))} were run again: delete that file."
            )
            continue
        about = {**facts, "stored": kept} if new or earlier is None else read_provenance(earlier)
        about = {**about, "stored": [task for task in about.get("stored", ()) if task in kept]}
        name, lacking = label, sorted(known.difference(seeds))
        if lacking:
            name, about = f"{label}-{len(seeds)}-seeds", {**about, "not_run": lacking}
        yield SeedGroup(name, new, split_stored(earlier, joined), about)


def _group_seeds(runs: Iterable[xr.Dataset]) -> dict[tuple[int, ...], list[xr.Dataset]]:
    """Return the runs of tasks with the same seeds."""
    tasks: dict[str, list[xr.Dataset]] = {}
    for run in runs:
        tasks.setdefault(str(run["task"].item()), []).append(run)
    groups: dict[tuple[int, ...], list[xr.Dataset]] = {}
    for part in tasks.values():
        groups.setdefault(tuple(sorted(int(run["seed"].item()) for run in part)), []).extend(part)
    return groups


def _read_stored(folder: Path, start: str) -> dict[tuple[int, ...], xr.Dataset]:
    """Return the stored results of a model by their seeds."""
    paths = [folder / f"{start}.nc", *sorted(folder.glob(f"{start}-*-seeds.nc"))]
    results = [hs.open_result(path) for path in paths if path.is_file()]
    return {tuple(map(int, data["seed"].values)): data for data in results}


def split_stored(stored: xr.Dataset | None, joined: Iterable[str]) -> list[xr.Dataset]:
    """Return the results of an earlier run, one for each task and seed, of the tasks that were not joined anew."""
    if stored is None:
        return []
    tasks = [task for task in map(str, stored["task"].values) if task not in set(joined)]
    return [stored.sel(task=[task], seed=[seed]) for task in tasks for seed in stored["seed"].values]


def widen_intervals(numbers: xr.Dataset, names: Iterable[str], share: float = 1.0) -> xr.Dataset:
    """Return results of accuracy with no interval of a change narrower than if no prediction had changed.

    That is so for changes measured now (`least_margin`); those of earlier runs could have no width at all. `share` is
    the part of the inputs that the changes are of.
    """
    if str(numbers["metric"].values.ravel()[0]) != "accuracy":
        return numbers
    margin = least_margin(int(share * int(numbers["n"].values.ravel()[0])))
    for name in names:
        value, low, high = (numbers[end] for end in interval_names(name))
        widened = value, np.minimum(low, value - margin), np.maximum(high, value + margin)
        numbers = numbers.assign(dict(zip(interval_names(name), widened, strict=True)))
    return numbers


def to_single(values: xr.DataArray) -> xr.DataArray:
    """Return double-precision values in single precision, and others as they are."""
    return values.astype(np.float32) if values.dtype == np.float64 else values


def join_models(options: argparse.Namespace) -> None:
    """Join runs of different models over the same data; a shallower model has no values in deeper layers."""
    parts = [hs.open_result(path) for path in options.paths]
    facts = [read_provenance(part) for part in parts]
    if len({(fact["data"], fact["n"]) for fact in facts}) > 1:
        raise SystemExit("These runs are over different data.")
    joined = {
        "command": f"{facts[0]['command']}, one run for each model, joined",
        "model": sorted(name for fact in facts for name in fact["model"]),
        "weights_hash": {name: code for fact in facts for name, code in fact["weights_hash"].items()},
    }
    whole = xr.concat([part.drop_attrs() for part in parts], "model", join="outer")
    hs.save(stamp(whole, **{**facts[0], **joined}), options.out, overwrite=True)
