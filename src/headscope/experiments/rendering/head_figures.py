"""Figures of what removing heads changes."""

import xarray as xr
from matplotlib.figure import Figure

from headscope.experiments.analysis.heads.head_effects import LEVEL
from headscope.experiments.summary import list_tasks
from headscope.plotting.draw import draw
from headscope.results.stamp import stamp


def draw_effects(numbers: xr.Dataset) -> Figure:
    """Draw the change of the score without each head, a panel for each task; bold where all seeds are significant."""
    change = {"change": numbers["change"], "change_p": numbers["change"]}  # which makes the scale symmetric
    table = xr.Dataset({**change, "change_significant": numbers["significant"] == 1}).rename(task="lens")
    table["change"].attrs["long_name"] = "score"
    return draw(stamp(table, correction="holm", level=LEVEL), "heads", title="Change of the score without each head")


def choose_parts(numbers: xr.Dataset) -> tuple[str, str]:
    """Return the task and the parts to draw: the first task with groups, else halves of the first task."""
    correlation, tasks = numbers["effect_correlation"].sel(parts="groups"), list_tasks(numbers)
    grouped = [task for task in tasks if bool(correlation.sel(task=task).notnull())]
    return (grouped[0], "groups") if grouped else (tasks[0], "halves")


def draw_parts(numbers: xr.Dataset, task: str, parts: str) -> Figure:
    """Draw the effect of every head on one part of the data against that on the other."""
    part, data = numbers.sel(task=task, parts=parts), xr.Dataset()
    for variable, side in (("first", 0), ("second", 1)):
        name = str(part["part_name"].values[side])
        effect = part["effect"].isel(side=side).drop_vars(("task", "parts")).astype(float)
        data[variable] = effect.assign_attrs(long_name=f"change of the score, {name}")
    return draw(data, "scatter", x="first", y="second", title=task)
