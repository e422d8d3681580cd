"""The result of a probe as a table: a row for each group of words, such as a relation."""

from typing import Any

import pandas as pd
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.estimate import estimate
from headscope.results.accuracies import select_adjusted_p

ARROWS = {"dependent to head": "→", "head to dependent": "←"}


def find_group_axis(data: xr.Dataset) -> str:
    """Return the axis of `accuracy` along groups of words; raise InputError for what is no result of a probe."""
    dims = set(map(str, data["accuracy"].dims)) if "accuracy" in data else set()
    if not {"task", "predictor"} <= dims or len(dims) != 3:
        raise InputError("This is no result of one probe. Fit one: hs.probe(model, data, 'dependency').")
    return (dims - {"task", "predictor"}).pop()


def select_task(data: xr.Dataset, task: str | None = None) -> xr.Dataset:
    """Return what a probe found on one task, by default the first, which is no control."""
    tasks = [str(name) for name in data["task"].values]
    if task is not None and task not in tasks:
        raise InputError(f"The probe has no task '{task}'. Its tasks: {', '.join(tasks)}.")
    return data.sel(task=task or tasks[0])


def name_best_heads(data: xr.Dataset) -> list[str]:
    """Return the attention head that was chosen for each group of one task, with an arrow where it has a direction.

    → is attention from a word to the predicted one, ← the attention of the predicted one to the word.
    """
    if "best_head" not in data:
        return []
    axis = str(data["best_head"].dims[-1])
    groups = [data.isel({axis: index}) for index in range(data.sizes[axis])]
    names = [f"L{int(group['best_layer'])}H{int(group['best_head'])}" for group in groups]
    if "best_direction" not in data:
        return names
    return [f"{name} {ARROWS[str(group['best_direction'].item())]}" for name, group in zip(names, groups, strict=True)]


def make_probe_table(data: xr.Dataset, task: str | None = None) -> pd.DataFrame:
    """Return the accuracies of all predictors and the gain over the second one, with intervals where known.

    Columns: n, the best head and the best offset where these were chosen, each predictor, `gain` and p; intervals are
    `_low` and `_high`.
    """
    axis, selected = find_group_axis(data), select_task(data, task)
    first, *baselines = [str(name) for name in data["predictor"].values]
    columns: dict[str, Any] = {"n": selected["accuracy_n"].sel(predictor=first).values.astype(int)}
    columns |= {"best head": names} if (names := name_best_heads(selected)) else {}
    columns |= estimate(selected, "accuracy").sel(predictor=first).columns(first.replace("_", " "))
    columns |= {"offset": selected["best_offset"].values} if "best_offset" in selected else {}
    columns |= {name.replace("_", " "): selected["accuracy"].sel(predictor=name).values for name in baselines}
    if "gain" in selected:
        columns |= estimate(selected, "gain").columns("gain")
        columns["p"] = select_adjusted_p(selected, "gain").values
    return pd.DataFrame(columns, index=pd.Index([str(label) for label in data[axis].values], name=axis))
