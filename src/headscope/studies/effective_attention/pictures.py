"""The paper's figures, drawn from the study's numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.patterns import NAMES
from headscope.plotting import canvas, fonts, heatmap, series, theme
from headscope.plotting import head_cells as grid
from headscope.plotting.draw import draw
from headscope.studies.effective_attention.names import ATTENTIONS, TYPES
from headscope.uncertainty.intervals import Array

SHOWN = ("standard", "visible", "paper")
LAST_ROWS = 8
"""Rows of the map that the paper's Figure 2 shows."""

WIDE = 7.0
"""Inches for the columns of a map."""


@theme.apply()
def head_grids(table: xr.DataArray, label: str, *, signed: bool) -> Figure:
    """Layers down and heads across for every task, one row of panels for each attention, all on one scale.

    `table` has task, lens, layer and head; on a symmetric scale where weights may be negative.
    """
    cells = table.transpose("lens", "task", "layer", "head").values.astype(float)
    lenses, tasks, layers, heads = cells.shape
    cell = min(0.24, 7.4 / (tasks * heads))
    scale = heatmap.weight_scale(cells, signed=True) if signed else grid.value_scale(cells)
    box = (heads * cell, layers * cell)
    figure, panels = _panels((lenses, tasks), box, Room(left=0.75, right=1.3, top=0.45, across=0.15, down=0.3))
    for row, lens in enumerate(table["lens"].values):
        for column, task in enumerate(table["task"].values):
            panel = panels[row][column]
            _cells(panel, cells[row, column], scale)
            grid.label_heads(panel, table.to_dataset(name="value"), cell, layers=column == 0)
            panel.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)
            if row == 0:
                panel.set_title(str(task), fontsize=theme.LABEL)
            if column == 0:
                panel.set_ylabel(ATTENTIONS[str(lens)], fontsize=theme.NOTE)
    heatmap.add_colour_bar(panels[0][-1], scale, label, (box[0], max(box[1], 1.2)))
    return figure


@theme.apply()
def type_grids(table: xr.DataArray) -> Figure:
    """Types down and heads across: what [CLS] attends to in the last layer, a row of panels for each task."""
    cells = table.transpose("task", "lens", "type", "head").values.astype(float)
    tasks, lenses, types, heads = cells.shape
    cell = min(0.24, 6.4 / (lenses * heads))
    box = (heads * cell, types * cell)
    figure, panels = _panels((tasks, lenses), box, Room(left=1.3, right=1.0, top=0.5, across=0.15, down=0.3))
    for row, task in enumerate(table["task"].values):
        scale = heatmap.weight_scale(cells[row], signed=True)  # of one task, for all attentions
        for column, lens in enumerate(table["lens"].values):
            panel = panels[row][column]
            _cells(panel, cells[row, column], scale)
            _name_types(panel, table, named=column == 0, cell=cell)
            if row == 0:
                panel.set_title(ATTENTIONS[str(lens)], fontsize=theme.LABEL)
            if column == 0:
                panel.set_ylabel(str(task), fontsize=theme.LABEL)
        heatmap.add_colour_bar(panels[row][-1], scale, "weight", box)
    return figure


def shares(table: xr.DataArray) -> Figure:
    """Shares of the pattern classes for every task, one panel for each attention; of one task all in one panel."""
    data = xr.Dataset({"share": (100 * table).assign_attrs(long_name="share of maps", units="%")})
    named = data.assign_coords(lens=[ATTENTIONS[str(each)] for each in data["lens"].values])
    along, wide = "task", 8.5
    if named.sizes["task"] == 1:
        named, along, wide = named.isel(task=0, drop=True).rename(lens="attention"), "attention", 4.2
    look: dict[str, Any] = {"variable": "share", "along": along, "title": "", "size": wide}
    return draw(named.expand_dims(layer=[0], head=[0]), "stacked_bars", **look)


@theme.apply()
def one_head(maps: xr.Dataset, *, rows: int | None = None) -> Figure:
    """One head on one example, standard above effective, on one symmetric scale; or only its last rows.

    Where both are the same there is one map, and a note that says why.
    """
    part = maps if rows is None else maps.isel(query=slice(-rows, None))
    cells = part["weights"].isel(layer=0, head=0).transpose("lens", "query", "key").values.astype(float)
    same = bool(np.allclose(cells[0], cells[1], atol=1e-6))  # float32 weights
    shown = cells[:1] if same else cells
    queries, keys = cells.shape[1:]
    cell = min(0.3, WIDE / keys)
    top = 0.7 + 0.055 * max(len(str(each)) for each in part["key_token"].values)
    room = Room(left=1.2, right=1.1, top=top, across=0.0, down=top - 0.2, below=0.55 if same else 0.1)
    figure, panels = _panels((len(shown), 1), (keys * cell, queries * cell), room)
    scale = heatmap.weight_scale(cells, signed=True, spacing="root")
    for (panel,), weights, name in zip(panels, shown, ("standard", "effective"), strict=False):
        heatmap.draw_cells(panel, weights, scale)
        heatmap.label_axes(panel, part, cell)
        panel.set_title(name, fontsize=theme.LABEL)
    heatmap.add_colour_bar(panels[0][0], scale, "weight", (keys * cell, max(queries * cell, 1.2)))
    if same:
        canvas.add_note(
            panels[0][0], "All of this attention reaches the output: effective attention is the same.", width=4
        )
    return figure


@theme.apply()
def intervals(table: xr.Dataset) -> Figure:
    """A panel for each pattern class: its share on every task with each attention, and the interval."""
    patterns = [NAMES[str(each)] for each in table["pattern"].values]
    figure = canvas.new_figure((8.5, 2.6))
    panels = figure.subplots(1, len(patterns), squeeze=False, sharey=True)
    lenses, tasks = ([str(each) for each in table[name].values] for name in ("lens", "task"))
    for panel, name, place in zip(panels[0], patterns, range(len(patterns)), strict=True):
        for at, (style, lens) in enumerate(zip(series.styles(lenses, "attentions"), lenses, strict=True)):
            here = 100 * table.isel(pattern=place).sel(lens=lens)
            x = np.arange(len(tasks)) + 0.22 * (at - (len(lenses) - 1) / 2)
            reach = np.nan_to_num(np.stack([here["value"] - here["low"], here["high"] - here["value"]]).clip(0))
            look: dict[str, Any] = {"color": style.colour, "marker": style.mark, "linestyle": "none"}
            panel.errorbar(x, here["value"], yerr=reach, markersize=3, elinewidth=0.9, label=ATTENTIONS[lens], **look)
        panel.set_title(name, fontsize=theme.NOTE)
        panel.set_xticks(range(len(tasks)), labels=tasks, fontsize=6.5, rotation=40, ha="right", rotation_mode="anchor")
        panel.set_xlim(-0.6, len(tasks) - 0.4)
        series.style_axes(panel)
        panel.tick_params(axis="x", labelsize=6.5)
    panels[0][0].set_ylabel("share of maps (%)", fontsize=theme.NOTE)
    _legend(figure, panels[0, 0])
    return figure


@theme.apply()
def by_length(table: Mapping[str, xr.Dataset], label: str) -> Figure:
    """Weights by length of the input, standard, exact and as published; a panel for each task and thing."""
    first = next(iter(table.values()))
    tasks = [str(each) for each in first["task"].values]
    figure = canvas.new_figure((min(8.5, 1.0 + 1.75 * len(tasks)) if len(tasks) > 1 else 3.4, 1.0 + 1.6 * len(table)))
    panels = figure.subplots(len(table), len(tasks), squeeze=False, sharey="row")
    lenses = [str(each) for each in first["lens"].values]
    for row, (name, each) in enumerate(table.items()):
        for column, task in enumerate(tasks):
            panel = panels[row, column]
            _lines(panel, each.sel(task=task), lenses)
            if row == 0:
                panel.set_title(task, fontsize=theme.LABEL)
            if column == 0:
                panel.set_ylabel(name, fontsize=theme.NOTE)
            if row < len(table) - 1:
                panel.set_xticklabels([])
    _legend(figure, panels[0, 0])
    figure.supxlabel(label, fontsize=theme.NOTE, color=theme.quiet)
    return figure


def _lines(panel: Axes, one: xr.Dataset, lenses: Sequence[str]) -> None:
    labels = [str(each) for each in one["length"].values]
    places = np.arange(len(labels))
    for style, lens in zip(series.styles(lenses, "attentions"), lenses, strict=True):
        here = one.sel(lens=lens)
        value = here["value"].values
        ends = np.nan_to_num(np.stack([value - here["low"].values, here["high"].values - value]))
        look: dict[str, Any] = {"color": style.colour, "linestyle": style.line, "marker": style.mark}
        panel.errorbar(
            places, value, yerr=ends, markersize=3.5, linewidth=1.1, elinewidth=0.7, label=ATTENTIONS[lens], **look
        )
    panel.set_xticks(places, labels=labels, fontsize=6.5, rotation=40, ha="right", rotation_mode="anchor")
    panel.axhline(0, color=theme.quiet, linewidth=0.5)
    panel.set_xlim(-0.3, len(labels) - 0.7)
    series.style_axes(panel)
    panel.tick_params(axis="x", labelsize=6.5)


def _legend(figure: Figure, panel: Axes) -> None:
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=theme.NOTE, columnspacing=1.0)


@dataclass(frozen=True)
class Room:
    """Inches around panels, and between them."""

    left: float
    right: float
    top: float
    across: float
    down: float
    below: float = 0.1


def _panels(many: tuple[int, int], box: tuple[float, float], room: Room) -> tuple[Figure, list[list[Axes]]]:
    """So many rows and columns of panels of `box` inches each, in a figure that is just as large as they need."""
    rows, columns = many
    wide = room.left + columns * box[0] + (columns - 1) * room.across + room.right
    high = room.top + rows * box[1] + (rows - 1) * room.down + room.below
    figure = Figure(figsize=(wide, high))
    found = []
    for row in range(rows):
        bottom = high - room.top - (row + 1) * box[1] - row * room.down
        lefts = [room.left + column * (box[0] + room.across) for column in range(columns)]
        found.append([figure.add_axes((x / wide, bottom / high, box[0] / wide, box[1] / high)) for x in lefts])
    return figure, found


def _cells(panel: Axes, cells: Array, scale: heatmap.ColourScale) -> None:
    heatmap.hatch_missing(panel, cells)
    panel.imshow(cells, norm=scale.norm, cmap=scale.colours, aspect="equal", interpolation="nearest")


def _name_types(panel: Axes, table: xr.DataArray, *, named: bool, cell: float) -> None:
    types = [fonts.to_label(TYPES.get(str(each), str(each))) for each in table["type"].values]
    panel.set_yticks(range(len(types)), labels=types if named else [""] * len(types), fontsize=theme.NOTE)
    heads = [f"H{int(each)}" for each in table["head"].values]
    step = 1 if cell > 0.26 else 2
    panel.set_xticks(range(0, len(heads), step), labels=heads[::step], fontsize=6)
    panel.xaxis.tick_top()
    panel.tick_params(length=0, pad=2)
