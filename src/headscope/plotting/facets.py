"""Grids of panels over two dimensions of a Dataset: heat maps, points with intervals, stacked shares, pairs of maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.plotting import canvas, fonts, heatmap, scales, series, theme
from headscope.plotting.draw import draw
from headscope.plotting.head_cells import value_scale

CELL = 0.24
"""The largest side of a cell, in inches."""

MAP_WIDTH = 7.0
"""Inches for the columns of one attention map."""


@dataclass(frozen=True)
class Margins:
    """Inches around panels and between them."""

    left: float
    right: float
    top: float
    across: float = 0.15
    down: float = 0.3
    bottom: float = 0.1


@theme.apply()
def heat_facets(
    table: xr.DataArray,
    *,
    rows: str,
    columns: str,
    y: str,
    label: str,
    signed: bool = False,
    scale: Literal["figure", "row"] = "figure",
    names: Mapping[str, str] | None = None,
) -> Figure:
    """Draw a heat map of `y` × `head` for every pair of labels of `rows` and `columns`.

    Colours mean the same in the whole figure, or in each row of panels. `names` are the texts of labels.
    """
    cells = table.transpose(rows, columns, y, "head").values.astype(float)
    shape = cells.shape
    cell = min(CELL, 7.0 / (shape[1] * shape[3]))
    box = (shape[3] * cell, shape[2] * cell)
    texts = {dim: _name(table, dim, names or {}) for dim in (rows, columns, y)}
    left = 0.45 + fonts.label_width(texts[y]) * theme.text_size("note")
    figure, panels = make_panels(shape[:2], box, Margins(left, right=1.3, top=0.5))
    for row in range(shape[0]):
        colours = value_scale(cells if scale == "figure" else cells[row], signed=signed)
        for column in range(shape[1]):
            panel = panels[row][column]
            heatmap.draw_image(panel, cells[row, column], colours)
            _label_cells(panel, texts[y], [f"H{int(head)}" for head in table["head"].values], cell, named=column == 0)
        panels[row][0].set_ylabel(texts[rows][row], fontsize=theme.text_size("note"))
        if row == 0 or scale == "row":
            scales.add_colour_bar(panels[row][-1], colours, label, (box[0], max(box[1], 1.2)))
    for panel, text in zip(panels[0], texts[columns], strict=True):
        panel.set_title(text, fontsize=theme.text_size("label"))
    return figure


@theme.apply()
def interval_facets(
    table: Mapping[str, Mapping[str, xr.Dataset]], *, x: str, label: str = "", lines: bool = False
) -> Figure:
    """Draw values with their intervals along `x`, one series for each lens.

    `table` are rows of panels with their titles, each a mapping from the titles of its columns to a Dataset with
    `value`, `low` and `high`. Points of different series stand beside each other, or are joined by lines.
    """
    titles = list(next(iter(table.values())))
    high = 1.0 + 1.6 * len(table)
    wide = min(8.5, 1.0 + 1.75 * len(titles)) if len(titles) > 1 else 3.4
    figure = canvas.new_figure((wide, high))
    panels = figure.subplots(len(table), len(titles), squeeze=False, sharey="row")
    for row, (name, columns) in enumerate(table.items()):
        for column, (title, data) in enumerate(columns.items()):
            panel = panels[row, column]
            _draw_series(panel, data, x, lines=lines)
            if row == 0:
                panel.set_title(title, fontsize=theme.text_size("label") if lines else theme.text_size("note"))
            if row < len(table) - 1:
                panel.set_xticklabels([])
        panels[row, 0].set_ylabel(name, fontsize=theme.text_size("note"))
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside upper center", ncols=3, fontsize=theme.text_size("note"), columnspacing=1.0
    )
    if label:
        figure.supxlabel(label, fontsize=theme.text_size("note"), color=theme.quiet)
    return figure


def stacked_shares(table: xr.DataArray, *, along: str, label: str) -> Figure:
    """Draw shares of a whole as stacked bars along a dimension, one panel for each lens; of one label all in one."""
    data = xr.Dataset({"share": (100 * table).assign_attrs(long_name=label, units="%")})
    width = 8.5
    if data.sizes[along] == 1:
        data, along, width = data.isel({along: 0}, drop=True).rename(lens="attention"), "attention", 4.2
    whole = data.expand_dims(layer=[0], head=[0])
    return draw(whole, "stacked_bars", variable="share", along=along, title="", size=width)


@theme.apply()
def stacked_maps(maps: xr.Dataset, *, last_rows: int | None = None, same: str = "") -> Figure:
    """Draw one head on one example through each lens, on one symmetric scale; or only the last rows of its map.

    Where all lenses give the same map there is one, with the note `same`.
    """
    part = maps if last_rows is None else maps.isel(query=slice(-last_rows, None))
    cells = part["weights"].isel(layer=0, head=0).transpose("lens", "query", "key").values.astype(float)
    equal = bool(np.allclose(cells, cells[:1], atol=1e-6, equal_nan=True))  # float32 weights
    shown = cells[:1] if equal else cells
    queries, keys = cells.shape[1:]
    cell = min(0.3, MAP_WIDTH / keys)
    top = 0.7 + 0.055 * max(len(str(token)) for token in part["key_token"].values)
    margins = Margins(left=1.2, right=1.1, top=top, across=0.0, down=top - 0.2, bottom=0.55 if equal else 0.1)
    figure, panels = make_panels((len(shown), 1), (keys * cell, queries * cell), margins)
    scale = scales.weight_scale(cells, signed=True, spacing="root")
    for (panel,), weights, name in zip(panels, shown, part["lens"].values, strict=False):
        heatmap.draw_cells(panel, weights, scale)
        heatmap.label_axes(panel, part, cell)
        panel.set_title(str(name), fontsize=theme.text_size("label"))
    scales.add_colour_bar(panels[0][0], scale, "weight", (keys * cell, max(queries * cell, 1.2)))
    if equal:
        canvas.add_note(panels[0][0], same, width=4)
    return figure


@theme.apply()
def row_facets(
    weights: xr.DataArray, tokens: Sequence[Sequence[str]], titles: Sequence[str], *, label: str, width: float = 6.9
) -> Figure:
    """Draw what one token attends to, layers up and tokens across, for each pair of labels of `version` and `lens`.

    `tokens` and `titles` are those of each version. Colours mean the same in the whole figure. Lenses stand beside
    each other where their cells are large enough for the names of tokens, else below each other.
    """
    cells = weights.transpose("version", "lens", "layer", "token").values.astype(float)
    lenses, layers = [str(lens) for lens in weights["lens"].values], [f"L{layer}" for layer in weights["layer"].values]
    longest = max(map(len, tokens))
    beside = 1.7 + 0.15 * (len(lenses) - 1) + 0.12 * longest * len(lenses) <= width
    across = len(lenses) if beside else 1
    cell = min(CELL, (width - 1.7 - 0.15 * (across - 1)) / (longest * across))
    names = [[fonts.to_label(token) for token in row] for row in tokens]
    above = 0.55 + max(fonts.label_width(row) for row in names) * theme.text_size("small")
    shape = (len(titles) * (1 if beside else len(lenses)), across)
    margins = Margins(left=0.7, right=1.0, top=above, down=above - 0.1)
    figure, panels = make_panels(shape, (longest * cell, len(layers) * cell), margins)
    scale = scales.weight_scale(cells, signed=False, spacing="root")
    for version, (title, texts) in enumerate(zip(titles, names, strict=True)):
        for index, lens in enumerate(lenses):
            panel = panels[version][index] if beside else panels[version * len(lenses) + index][0]
            heatmap.draw_image(panel, cells[version, index], scale)
            panel.invert_yaxis()  # the input is below
            panel.set_xticks(range(len(texts)), labels=texts, fontsize=theme.text_size("small"), rotation=90)
            panel.set_yticks(
                range(len(layers)), labels=layers if index == 0 or not beside else [], fontsize=theme.text_size("small")
            )
            panel.xaxis.tick_top()
            panel.tick_params(length=0, pad=2)
            panel.set_title(f"{lens}: {title}" if index == 0 or not beside else lens, fontsize=theme.text_size("note"))
    bar = (longest * cell, max(len(layers) * cell, 1.2))
    scales.add_colour_bar(panels[0][-1], scale, label, bar)
    return figure


def make_panels(shape: tuple[int, ...], box: tuple[float, float], margins: Margins) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with rows and columns of panels of `box` inches each, just as large as they need."""
    rows, columns = shape
    wide = margins.left + columns * box[0] + (columns - 1) * margins.across + margins.right
    high = margins.top + rows * box[1] + (rows - 1) * margins.down + margins.bottom
    figure = Figure(figsize=(wide, high))
    panels = []
    for row in range(rows):
        bottom = high - margins.top - (row + 1) * box[1] - row * margins.down
        lefts = [margins.left + column * (box[0] + margins.across) for column in range(columns)]
        panels.append([figure.add_axes((x / wide, bottom / high, box[0] / wide, box[1] / high)) for x in lefts])
    return figure, panels


def _name(table: xr.DataArray, dim: str, names: Mapping[str, str]) -> list[str]:
    letter = {"layer": "L", "head": "H"}.get(dim, "")
    return [fonts.to_label(names.get(str(label), f"{letter}{label}")) for label in table[dim].values]


def _label_cells(panel: Axes, rows: Sequence[str], heads: Sequence[str], cell: float, *, named: bool) -> None:
    """Name rows on the left and heads on top; every second head where they would overlap."""
    size = max(5.0, min(theme.text_size("note"), cell * 72 / 1.28))
    panel.set_yticks(range(len(rows)), labels=rows if named else [""] * len(rows), fontsize=size)
    step = 1 if cell > 0.26 else 2
    panel.set_xticks(range(0, len(heads), step), labels=heads[::step], fontsize=6)
    panel.xaxis.tick_top()
    panel.tick_params(length=0, pad=2)
    panel.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)


def _draw_series(panel: Axes, data: xr.Dataset, x: str, *, lines: bool) -> None:
    labels, names = ([str(label) for label in data[dim].values] for dim in (x, "lens"))
    middle = (len(names) - 1) / 2
    for at, (style, name) in enumerate(zip(series.styles(names, "attentions"), names, strict=True)):
        part = data.sel(lens=name)
        value = part["value"].values
        ends = np.nan_to_num(np.stack([value - part["low"].values, part["high"].values - value]).clip(0))
        places = np.arange(len(labels)) + (0 if lines else 0.22 * (at - middle))
        look: dict[str, Any] = {"color": style.colour, "marker": style.mark, "markersize": 3.5 if lines else 3}
        look |= {"linestyle": style.line, "linewidth": 1.1} if lines else {"linestyle": "none"}
        panel.errorbar(places, value, yerr=ends, elinewidth=0.7 if lines else 0.9, label=name, **look)
    panel.set_xticks(range(len(labels)), labels=labels, fontsize=6.5, rotation=40, ha="right", rotation_mode="anchor")
    panel.set_xlim((-0.3, len(labels) - 0.7) if lines else (-0.6, len(labels) - 0.4))
    if lines:
        panel.axhline(0, color=theme.quiet, linewidth=0.5)
    series.style_axes(panel)
    panel.tick_params(axis="x", labelsize=6.5)
