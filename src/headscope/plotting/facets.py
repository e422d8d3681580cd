"""Grids of panels over two dimensions of a Dataset: heat maps, points with intervals, stacked shares, pairs of maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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

SIDES = ("query", "key")

MAX_MAP_WIDTH = 11.0
"""Inches of a figure of attention maps that is wider than a page, so that all tokens are named."""


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
    width: float = theme.PAGE[0],
) -> Figure:
    """Draw a heat map of `y` × `head` for every pair of labels of `rows` and `columns`, `width` inches in all.

    Colours mean the same in the whole figure, or in each row of panels. `names` are the texts of labels.
    """
    if table.sizes[columns] == 1 and scale == "figure":
        rows, columns = columns, rows  # a single column of panels would leave most of the width empty
    cells = table.transpose(rows, columns, y, "head").values.astype(float)
    shape = cells.shape
    texts = {dim: _name(table, dim, names or {}) for dim in (rows, columns, y)}
    heads = [f"H{int(head)}" for head in table["head"].values]
    note = theme.text_size("note")
    margins = Margins(left=0.25 + fonts.label_width(texts[y]) * note, right=0.8 if scale == "row" else 0.1, top=0.45)
    if scale == "figure":
        colours = value_scale(cells, signed=signed)
        margins = replace(margins, bottom=scales.bar_height(colours, label, 0.8 * width) + 0.05)
    cell = (width - margins.left - margins.right - (shape[1] - 1) * margins.across) / (shape[1] * shape[3])
    box = (shape[3] * cell, shape[2] * min(cell, CELL))
    figure, panels = make_panels(shape[:2], box, margins)
    for row in range(shape[0]):
        colours = colours if scale == "figure" else value_scale(cells[row], signed=signed)
        for column in range(shape[1]):
            heatmap.draw_image(panels[row][column], cells[row, column], colours, aspect="auto")
            _label_cells(panels[row][column], texts[y], heads, (cell, min(cell, CELL)), named=column == 0)
        panels[row][0].set_ylabel(texts[rows][row], fontsize=note)
        if scale == "row":
            scales.add_colour_bar(panels[row][-1], colours, label, box)
    if scale == "figure":
        _add_bar_below(figure, colours, label, margins.bottom)
    for panel, text in zip(panels[0], texts[columns], strict=True):
        panel.set_title(text, fontsize=theme.text_size("label"))
    return figure


@theme.apply()
def interval_facets(
    table: Mapping[str, Mapping[str, xr.Dataset]],
    *,
    x: str,
    label: str = "",
    lines: bool = False,
    width: float = theme.PAGE[0],
) -> Figure:
    """Draw values with their intervals along `x`, one series for each lens.

    `table` are rows of panels with their titles, each a mapping from the titles of its columns to a Dataset with
    `value`, `low` and `high`. Points of different series stand beside each other, or are joined by lines. A panel has
    no labels below it where those of the panel underneath are the same.
    """
    titles = list(next(iter(table.values())))
    figure, note = canvas.new_figure((width, 1.0 + 1.6 * len(table))), theme.text_size("note")
    panels = figure.subplots(len(table), len(titles), squeeze=False, sharey="row")
    rows_below: list[Mapping[str, xr.Dataset]] = [*list(table.values())[1:], {}]
    for row, (name, columns) in enumerate(table.items()):
        for column, (title, data) in enumerate(columns.items()):
            panel, below = panels[row, column], rows_below[row].get(title)
            _draw_series(panel, data, x, lines=lines)
            if row == 0:
                size = theme.text_size("label") if lines else note
                panel.set_title(canvas.wrap_text(title, (width - 0.6) / len(titles) - 0.1, size), fontsize=size)
            if below is not None and np.array_equal(data[x].values, below[x].values):
                panel.set_xticklabels([])
        panels[row, 0].set_ylabel(canvas.wrap_text(name, 1.4, note), fontsize=note)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize=note, columnspacing=1.0)
    if label:
        figure.supxlabel(label, fontsize=note, color=theme.quiet)
    return figure


def stacked_shares(table: xr.DataArray, *, along: str, label: str) -> Figure:
    """Draw shares of a whole as stacked bars along a dimension, one panel for each lens; of one label all in one."""
    data = xr.Dataset({"share": (100 * table).assign_attrs(long_name=label, units="%")})
    if data.sizes[along] == 1:
        data, along = data.isel({along: 0}, drop=True).rename(lens="attention"), "attention"
    whole = data.expand_dims(layer=[0], head=[0])
    return draw(whole, "stacked_bars", variable="share", along=along, title="", size=theme.PAGE[0])


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
    names = {side: fonts.label_width(map(fonts.to_label, map(str, part[f"{side}_token"].values))) for side in SIDES}
    smallest = theme.MIN_FONT_SIZE / heatmap.POINTS_PER_CELL  # the cell that has room for the smallest label
    right, left = 0.1, 0.3 + 1.1 * names["query"] * theme.MIN_FONT_SIZE * 1.3
    cell = min(CELL, max((theme.PAGE[0] - left - right) / keys, min(smallest, (MAX_MAP_WIDTH - left - right) / keys)))
    size = heatmap.font_size(cell)
    left, top = 0.3 + 1.1 * names["query"] * size, 0.6 + 1.1 * names["key"] * size
    second = str(part["lens"].values[:2][-1])  # as in the figure 'compare'
    scale = scales.weight_scale(cells, signed=True, like=(second, cells[:2][-1]))
    width = max(left + keys * cell + right, 0.5 * theme.PAGE[0])
    bar = scales.bar_height(scale, "weight", 0.8 * width) + 0.05
    margins = Margins(left, width - left - keys * cell, top, 0.0, top - 0.1, bottom=bar + (0.5 if equal else 0.0))
    figure, panels = make_panels((len(shown), 1), (keys * cell, queries * cell), margins)
    for (panel,), weights, name in zip(panels, shown, part["lens"].values, strict=False):
        heatmap.draw_cells(panel, weights, scale)
        heatmap.label_axes(panel, part, cell)
        panel.set_title(str(name), fontsize=theme.text_size("label"))
    _add_bar_below(figure, scale, "weight", bar)
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
    beside = 0.8 + 0.15 * (len(lenses) - 1) + 0.12 * longest * len(lenses) <= width
    across = len(lenses) if beside else 1
    cell = min(CELL, (width - 0.8 - 0.15 * (across - 1)) / (longest * across))
    names = [[fonts.to_label(token) for token in row] for row in tokens]
    above = 0.55 + max(fonts.label_width(row) for row in names) * theme.text_size("small")
    shape = (len(titles) * (1 if beside else len(lenses)), across)
    scale = scales.weight_scale(cells, signed=False)
    bar = scales.bar_height(scale, label, 0.8 * (0.8 + across * longest * cell)) + 0.05
    margins = Margins(left=0.7, right=0.1, top=above, down=above - 0.1, bottom=bar)
    figure, panels = make_panels(shape, (longest * cell, len(layers) * cell), margins)
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
    _add_bar_below(figure, scale, label, bar)
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


def _add_bar_below(figure: Figure, colours: scales.ColourScale, label: str, space: float) -> None:
    """Add a colour bar in the middle of the lowest `space` inches."""
    width, height = figure.get_size_inches()
    length = min(3.0, 0.6 * width)
    top = space - scales.GAP - scales.BAR
    bar_axes = figure.add_axes(((width - length) / 2 / width, top / height, length / width, scales.BAR / height))
    scales.draw_colour_bar(bar_axes, colours, label, (length, 0.8 * width), below=True)


def _name(table: xr.DataArray, dim: str, names: Mapping[str, str]) -> list[str]:
    letter = {"layer": "L", "head": "H"}.get(dim, "")
    return [fonts.to_label(names.get(str(label), f"{letter}{label}")) for label in table[dim].values]


def _label_cells(
    panel: Axes, rows: Sequence[str], heads: Sequence[str], cell: tuple[float, float], *, named: bool
) -> None:
    """Name rows on the left and heads on top, every n-th where labels would overlap."""
    size = max(theme.MIN_FONT_SIZE, min(theme.text_size("note"), cell[1] * 72 / 1.28))
    step = int(np.ceil(size * 1.2 / 72 / cell[1] - 1e-6))
    panel.set_yticks(range(0, len(rows), step), labels=rows[::step] if named else [], fontsize=size)
    if not named:
        panel.tick_params(labelleft=False)
    small = 6.0
    step = int(np.ceil((fonts.label_width(heads) * small + 0.04) / cell[0]))
    panel.set_xticks(range(0, len(heads), step), labels=heads[::step], fontsize=small)
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
