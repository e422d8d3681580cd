"""Results of several seeds as one: a statement about them must be true of each."""

from collections.abc import Sequence
from typing import Any

import xarray as xr

from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.results.seeds import COLLAPSED
from headscope.results.seeds import combine_seeds as combine_seeds

ROUNDING = 1e-6  # of scores in single precision


def mark_collapsed(numbers: xr.Dataset) -> xr.Dataset:
    """Return numbers that say which seeds collapsed: verdicts, means and intervals leave these out.

    A seed collapsed if its tuned model is right no more often than the most common label. A task keeps its seeds where
    all of them did, and where scores are no shares of right answers.
    """
    if "seed" not in numbers.dims or not {"score", "majority"} <= set(numbers):
        return numbers
    score = numbers["score"].sel(lens="raw", drop=True) if "lens" in numbers["score"].dims else numbers["score"]
    collapsed = score <= numbers["majority"] + ROUNDING
    return numbers.assign({COLLAPSED: collapsed & ~collapsed.all("seed")})


def keep_seeds(numbers: xr.Dataset) -> xr.Dataset:
    """Return the numbers of one task without the seeds that are marked as collapsed."""
    if COLLAPSED not in numbers or "seed" not in numbers.dims:
        return numbers
    return numbers.isel(seed=~numbers[COLLAPSED].values)


def join_seeds(runs: Sequence[xr.Dataset]) -> xr.Dataset:
    """Join results of one task and one seed each along `task` and `seed`, in their order; without seeds along `task`.

    Seeds of a task must study the same inputs, and every task must have the same seeds. What was not measured on a
    task is NaN there.
    """
    options: dict[str, Any] = {"join": "outer", "data_vars": "all", "combine_attrs": "override"}
    groups: dict[str, list[xr.Dataset]] = {}
    for run in runs:
        groups.setdefault(str(run["task"].item()), []).append(run)
    if not all("seed" in run.dims for run in runs):
        return xr.concat(runs, "task", **options)
    for task, seeds in groups.items():
        if len({str(run["data_hash"].item()) for run in seeds if "data_hash" in run}) > 1:
            raise InputError(f"The seeds of {task} study different inputs. Join runs on the same inputs only.")
    known = {task: [int(run["seed"].item()) for run in seeds] for task, seeds in groups.items()}
    if len({tuple(seeds) for seeds in known.values()}) > 1:
        listed = "; ".join(f"{task} {join_words(seeds)}" for task, seeds in known.items())
        raise InputError(f"Tasks have different seeds: {listed}. Join the same seeds of every task.")
    tasks = _share_labels([xr.concat(seeds, "seed", **options) for seeds in groups.values()])
    return xr.concat(tasks, "task", **options)


def _share_labels(tasks: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return the results of each task with the labels of dimensions that only others have."""
    labels = {dim: task[dim] for task in reversed(tasks) for dim in task.dims if dim in task.coords}
    return [task.assign_coords({dim: labels[dim] for dim in labels if dim not in task.dims}) for task in tasks]


def describe_seeds(numbers: xr.Dataset) -> str:
    """Return over how many seeds the numbers of a report are, or nothing where there is one."""
    count = numbers.sizes.get("seed", 1)
    if count == 1:
        return ""
    return (
        f"Every number is the mean of {count} seeds of training; its interval holds those of all seeds. Each "
        "seed is judged by its own interval, and a verdict needs the same answer from all of them."
    )
