"""Grids of panels over two dimensions of a Dataset: heat maps, points with intervals, stacked shares, pairs of maps."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.core.estimate import Estimate
from headscope.plotting import canvas, fonts, heatmap, scales, series, theme
from headscope.plotting.draw import draw
from headscope.plotting.head_cells import value_scale
from headscope.plotting.panels import new_grid

CELL = 0.24
"""The largest side of a cell, in inches."""

SMALLEST = 7.0
"""Points; smaller labels of places are hard to read in print."""

MAX_MAP_WIDTH = 11.0
"""Inches of a figure of attention maps that is wider than a page, so that all tokens are named."""


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
    down, across, layers, count = cells.shape
    texts = {dim: _name(table, dim, names or {}) for dim in (rows, columns, y)}
    heads = [f"H{int(head)}" for head in table["head"].values]
    around = 0.25 + fonts.label_width(texts[y]) * theme.text_size("note") + (0.8 if scale == "row" else 0.1)
    cell = (width - around - 0.15 * (across - 1)) / (across * count)  # inches
    high = min(cell, CELL)
    grid = new_grid(
        (width, (0.65 if scale == "figure" else 0.25) + down * (layers * high + 0.2)), down * across, across
    )
    shared = value_scale(cells, signed=signed)
    for row, panels in enumerate(grid.rows):
        colours = shared if scale == "figure" else value_scale(cells[row], signed=signed)
        for column, panel in enumerate(panels):
            heatmap.draw_image(panel, cells[row, column], colours, aspect="auto")
            _label_cells(panel, texts[y], heads, (cell, high), named=column == 0)
        if scale == "row":
            scales.add_shared_bar(panels, colours, label, layers * high, below=False)
    grid.name_rows(texts[rows])
    grid.name_panels(texts[columns])
    if scale == "figure":
        grid.add_color_bar(shared, label)
    grid.fit_cells((layers, count), CELL)
    return grid.figure.figure


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
    no labels below it where those of the panel underneath are the same. Numbers that would overlap are left out, other
    labels are turned.
    """
    titles = list(next(iter(table.values())))
    size = (width, 1.0 + 1.6 * len(table))
    grid = new_grid(size, len(table) * len(titles), len(titles), share_y="row")
    rows_below: list[Mapping[str, xr.Dataset]] = [*list(table.values())[1:], {}]
    for panels, columns, row_below in zip(grid.rows, table.values(), rows_below, strict=True):
        for panel, (title, data) in zip(panels, columns.items(), strict=True):
            _draw_series(panel, data, x, lines=lines)
            _name_places(panel, [str(name) for name in data[x].values], (width - 0.65) / len(titles) - 0.1)
            below = row_below.get(title)
            if below is not None and np.array_equal(data[x].values, below[x].values):
                panel.set_xticklabels([])
    grid.name_panels(titles, role="label" if lines else "note")
    grid.name_rows(table)
    grid.add_legend()
    if label:
        grid.figure.supxlabel(label, fontsize=theme.text_size("note"), color=theme.quiet)
    return grid.figure.figure


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
    shown, note = cells[:1] if equal else cells, theme.text_size("note")
    queries, keys = cells.shape[1:]
    tokens = fonts.label_width(map(str, part["query_token"].values)) * 1.4 * theme.MIN_FONT_SIZE  # inches on the left
    smallest = theme.MIN_FONT_SIZE / heatmap.POINTS_PER_CELL  # the cell that has room for the smallest label
    natural, readable = (0.5 + tokens + keys * cell for cell in (CELL, smallest))
    width = max(0.5 * theme.PAGE[0], min(natural, theme.PAGE[0]), min(readable, MAX_MAP_WIDTH))
    cell = min(CELL, (width - 0.4 - tokens) / keys)
    second = str(part["lens"].values[:2][-1])  # as in the figure 'compare'
    scale = scales.weight_scale(cells, signed=True, like=(second, cells[:2][-1]))
    grid = new_grid((width, 1.5 + len(shown) * (1.0 + queries * cell)), len(shown), 1)
    for panel, weights in zip(grid.panels, shown, strict=True):
        heatmap.draw_cells(panel, weights, scale)
        heatmap.label_axes(panel, part, cell)
    grid.name_panels(map(str, part["lens"].values))
    grid.add_color_bar(scale, "weight")
    if equal:
        grid.figure.supxlabel(canvas.wrap_text(same, width - 0.2, note), fontsize=note, color=theme.quiet)
    grid.fit_cells((queries, keys), CELL)
    return grid.figure.figure


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
    width = min(width, 0.8 + 0.15 * (across - 1) + across * longest * CELL)
    names = [[fonts.to_label(token) for token in row] for row in tokens]
    down = len(titles) * len(lenses) // across
    grid = new_grid((width, 1.0 + 1.8 * down), down * across, across)
    scale, small = scales.weight_scale(cells, signed=False), theme.text_size("small")
    pairs = [(version, index) for version in range(len(titles)) for index in range(len(lenses))]
    for panel, (version, index) in zip(grid.panels, pairs, strict=True):
        heatmap.draw_image(panel, cells[version, index], scale)
        panel.invert_yaxis()  # the input is below
        panel.set_xticks(range(len(names[version])), labels=names[version], fontsize=small, rotation=90)
        first = index == 0 or not beside
        panel.set_yticks(range(len(layers)), labels=layers if first else [], fontsize=small)
        panel.xaxis.tick_top()
        panel.tick_params(length=0, pad=2)
    long = [
        f"{lenses[index]}: {titles[version]}" if index == 0 or not beside else lenses[index] for version, index in pairs
    ]
    grid.name_panels(long, role="note")
    grid.add_color_bar(scale, label)
    grid.fit_cells((len(layers), longest), CELL)
    return grid.figure.figure


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
    step = int(np.ceil((fonts.label_width(heads) * SMALLEST + 0.04) / cell[0]))
    panel.set_xticks(range(0, len(heads), step), labels=heads[::step], fontsize=SMALLEST)
    panel.xaxis.tick_top()
    panel.tick_params(length=0, pad=2)
    panel.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)


def _draw_series(panel: Axes, data: xr.Dataset, x: str, *, lines: bool) -> None:
    labels, names = ([str(label) for label in data[dim].values] for dim in (x, "lens"))
    shifts = series.spread_series(len(names), 0.0 if lines else min(0.22, 0.88 / len(names)))
    for style, name, shift in zip(series.styles(names, "attentions"), names, shifts, strict=True):
        values, places = Estimate.from_fields(data).sel(lens=name), np.arange(len(labels)) + shift
        series.draw_estimates(panel, values, places, style, kind="line" if lines else "points", size=3, label=name)
    panel.set_xlim((-0.3, len(labels) - 0.7) if lines else (-0.6, len(labels) - 0.4))
    if lines:
        panel.axhline(0, color=theme.quiet, linewidth=0.5)
    series.style_axes(panel)


def _name_places(panel: Axes, labels: Sequence[str], width: float) -> None:
    """Name the places along x of a panel of about `width` inches: numbers as many as fit, other labels all."""
    size = max(SMALLEST, theme.text_size("small"))
    step = int(np.ceil((fonts.label_width(labels) * size + 0.06) * len(labels) / width))
    if not all(label.lstrip("-").replace(".", "", 1).isdigit() for label in labels):
        turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if step > 1 else {}
        panel.set_xticks(range(len(labels)), labels=labels, fontsize=size, **turned)
    else:
        panel.set_xticks(range(0, len(labels), step), labels=labels[::step], fontsize=size)
    panel.tick_params(axis="x", labelsize=size)
