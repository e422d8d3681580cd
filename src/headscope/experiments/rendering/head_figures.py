"""Figures of heads: what removing them changes, and words in a relation that they attend to."""

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.core.estimate import estimate
from headscope.core.provenance import stamp
from headscope.experiments.relation_heads import LARGER
from headscope.experiments.summary import list_tasks
from headscope.plotting import canvas, fonts, heatmap, scales, series, theme
from headscope.plotting.draw import draw
from headscope.plotting.head_cells import value_scale
from headscope.plotting.panels import new_grid
from headscope.uncertainty.corrections import LEVEL

MIDDLE = 2.2  # inches: the width of the panel with all heads
MARK: dict[str, Any] = {"fill": False, "edgecolor": "#c8102e", "linewidth": 1.4, "zorder": 4}


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


@theme.apply()
def draw_relation(relations: xr.Dataset, maps: xr.Dataset) -> Figure:
    """Draw the gain of every head for one relation between the maps of its best head on two texts.

    Frames mark the head, and the two related words.
    """
    name, layer, head = str(maps.attrs["relation"]), int(maps["layer"]), int(maps["head"])
    grid = new_grid((theme.PAGE[0], 3.3), 3, 3, width_ratios=(1, 1.25, 1))
    left, middle, right = grid.panels
    weights = scales.weight_scale(maps["weights"].values.astype(float), signed=False)
    for panel, example in ((left, 0), (right, 1)):
        if example < maps.sizes["example"]:
            _draw_words(panel, maps.isel(example=example), weights)
            panel.set_title(f"L{layer}H{head} on text {example + 1}", fontsize=theme.text_size("note"))
        else:
            panel.set_axis_off()
    gain = relations["gain"].sel(task=name, direction=LARGER).transpose("layer", "head")
    colours = value_scale(gain.values.astype(float), signed=True)
    heatmap.draw_image(middle, gain.values.astype(float), colours, aspect="auto")
    small = theme.text_size("small")
    middle.set_yticks(
        range(gain.sizes["layer"]), labels=[f"L{index}" for index in gain["layer"].values], fontsize=small
    )
    heads = [f"H{index}" for index in gain["head"].values]
    step = int(np.ceil((fonts.label_width(heads) * small + 0.04) * len(heads) / MIDDLE))
    middle.set_xticks(range(0, len(heads), step), labels=heads[::step], fontsize=small)
    middle.tick_params(length=0, pad=2)
    middle.set_title(f"{name}: weight above that at the same distance", fontsize=theme.text_size("note"))
    column, row = list(gain["head"].values).index(head), list(gain["layer"].values).index(layer)
    middle.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **MARK))
    scales.add_shared_bar([left], weights, "weight", 2.0)
    scales.add_shared_bar([middle], colours, "weight above", MIDDLE)
    return grid.figure.figure


def _draw_words(panel: Axes, text: xr.Dataset, scale: scales.ColourScale) -> None:
    count = int((text["word"].values != "").sum())
    heatmap.draw_cells(panel, text["weights"].values[:count, :count].astype(float), scale)
    labels = [fonts.to_label(str(word)) for word in text["word"].values[:count]]
    size = theme.text_size("small")
    panel.set_xticks(range(count), labels=labels, fontsize=size, rotation=90)
    panel.set_yticks(range(count), labels=labels, fontsize=size)
    panel.xaxis.tick_top()
    panel.tick_params(length=0, pad=2)
    i, j = text["pair"].values.tolist()
    for row, column in ((i, j), (j, i)):
        panel.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **MARK))


@theme.apply()
def draw_heterogeneous(numbers: xr.Dataset, bounds: tuple[float, float]) -> Figure:
    """Draw the share of heterogeneous maps of every task with its interval, over the range that the paper gives."""
    shares = estimate(numbers.sel(pattern="heterogeneous", lens="raw"), "share").scale(100)
    tasks = [str(task) for task in shares.value["task"].values]
    figure = canvas.new_figure((theme.PAGE[0], 0.9 + 0.27 * len(tasks)))
    panel, places = figure.subplots(), np.arange(len(tasks))
    panel.axvspan(*(100 * bound for bound in bounds), color=theme.faint, linewidth=0, zorder=0)
    series.draw_estimates(panel, shares, places, replace(series.STYLES[0], colour=theme.ink), along="x")
    panel.set_yticks(places, labels=tasks, fontsize=theme.text_size("label"))
    panel.set_ylim(len(tasks) - 0.5, -0.5)
    panel.set_xlim(0, 100)
    text = "heterogeneous maps (%); grey: the paper's range, {:.0f} to {:.0f} %"
    panel.set_xlabel(text.format(*(100 * bound for bound in bounds)), fontsize=theme.text_size("note"))
    panel.grid(axis="x", color=theme.faint, linewidth=0.4)
    return figure
