"""Attention maps as heat maps: queries down, keys across."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator

from headscope.core.errors import InputError
from headscope.plotting import canvas, fonts, scales, selection, theme
from headscope.plotting.scales import Cells, ColourScale

POINTS_PER_CELL = 0.8 * 72  # font size for each inch of cell
MIN_CELL, MAX_CELL = 0.12, 0.34  # inches, where the figure has no given width
SMALLEST_PANEL, SMALLEST_NATURAL = 0.5, 1.1  # inches: of a panel in a figure of a given width, and of any width


def draw_cells(ax: Axes, weights: Cells, scale: ColourScale) -> None:
    """Draw the cells, hatched where the weight is NaN, with guide lines for large maps."""
    draw_image(ax, weights, scale, zorder=1)
    rows, columns = weights.shape
    if max(rows, columns) > 20:
        lines: dict[str, Any] = {"color": theme.faint, "linewidth": 0.3, "zorder": 2}
        ax.hlines(np.arange(9.5, rows - 1, 10), -0.5, columns - 0.5, **lines)
        ax.vlines(np.arange(9.5, columns - 1, 10), -0.5, rows - 0.5, **lines)


def draw_image(ax: Axes, table: Cells, scale: ColourScale, **options: Any) -> None:
    """Draw a table as coloured cells, square by default, hatched where it is NaN."""
    hatch_missing(ax, table)
    look = {"aspect": "equal", "interpolation": "nearest", **options}
    ax.imshow(table, norm=scale.norm, cmap=scale.colours, **look)


def write_in_cell(ax: Axes, cell: tuple[int, ...], text: str, **look: Any) -> None:
    """Write a text that fits into a cell, given by its row and column; layouts need not measure it."""
    row, column = cell
    ax.text(column, row, text, ha="center", va="center", in_layout=False, **look)


def hatch_missing(ax: Axes, table: Cells) -> None:
    """Draw a hatched background where some cells are NaN, which are transparent."""
    if np.isnan(table).any():
        look: dict[str, Any] = {"facecolor": theme.hidden, "edgecolor": theme.hatch, "hatch": "/////", "linewidth": 0}
        ax.add_patch(Rectangle((0, 0), 1, 1, transform=ax.transAxes, zorder=0, **look))


def label_tokens(axis: Axis, data: xr.Dataset, side: str, cell: float, *, size: float | None = None) -> int:
    """Label rows or columns of `cell` inches with their tokens, every n-th where not all fit, and return n.

    Special tokens are bold.
    """
    size = font_size(cell) if size is None else size
    step = int(np.ceil(size / max(cell * POINTS_PER_CELL, 1e-3) - 1e-9))
    positions = range(0, data.sizes[side], step)
    axis.set_major_locator(FixedLocator(list(positions)))
    axis.set_major_formatter(fonts.TokenFormatter(selection.token_texts(data, side)))
    axis.set_tick_params(length=0 if step == 1 else 2, width=0.4, color=theme.quiet, pad=2, labelsize=size)
    bold, families = selection.special_tokens(data, side), [*fonts.font_families(), "sans-serif"]
    for position, tick in zip(positions, axis.get_major_ticks(len(positions)), strict=True):
        for text in (tick.label1, tick.label2):
            weight = "bold" if bold[position] else "normal"
            text.set(parse_math=False, fontfamily=families, fontweight=weight)
    return step


def font_size(cell: float) -> float:
    """Return the font size of tokens beside cells of that many inches; below the smallest, only some are labelled."""
    return max(theme.MIN_FONT_SIZE, min(theme.text_size("label"), cell * POINTS_PER_CELL))


def describe_step(step: int) -> str:
    """Say how many tokens are labelled; empty where all are.

    >>> describe_step(1), describe_step(3)
    ('', '1 of 3 labelled')
    """
    return f"1 of {step} labelled" if step > 1 else ""


def label_axes(ax: Axes, data: xr.Dataset, cell: float, *, queries: bool = True, keys: bool = True) -> None:
    """Label key tokens on top and query tokens on the left."""
    size = theme.text_size("note")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    for axis, side, role, shown in ((ax.xaxis, "key", "attended to", keys), (ax.yaxis, "query", "attends", queries)):
        step = label_tokens(axis, data, side, cell)
        text = f"{side}: {role}" + (f"\n({describe_step(step)})" if step > 1 else "")
        if fonts.text_width(text.replace("\n", " ")) * size <= cell * data.sizes[side]:
            text = text.replace("\n", " ")
        axis.set_label_text(text if shown else "", color=theme.quiet, fontsize=size)
    ax.xaxis.set_tick_params(labelrotation=90, labeltop=keys, top=keys)
    ax.yaxis.set_tick_params(labelleft=queries, left=queries)


def weight_label(maps: xr.Dataset) -> str:
    """Return what the weights of one lens are, for a colour bar."""
    return str(maps["quantity"].item()) if "quantity" in maps.coords else f"weight ({maps['lens'].item()})"


def cell_size(ax: Axes, shape: tuple[int, ...]) -> float:
    """Return the side in inches of square cells that fill the caller's axes."""
    width, height = canvas.axes_size(ax)
    return min(width / shape[1], height / shape[0])


@dataclass(frozen=True)
class MapLayout:
    """Sizes in inches of a figure with panels of maps."""

    cell: float
    size: tuple[float, float]
    below: bool  # the colour bar is below the panels, and not beside them


def fit_heatmap(
    data: xr.Dataset,
    width: float | None,
    *,
    grid: tuple[int, int] = (1, 1),
    shared: bool = True,
    extra: float = 0.0,
) -> MapLayout:
    """Return the sizes of a figure with rows and columns of panels as large as the map of `data`.

    Cells shrink with longer texts and with a given `width`, until the figure fits a page. Panels share the tokens
    around them unless `shared` is False; `extra` is height for titles and notes.
    """
    rows, columns = grid[0] * data.sizes["query"], grid[1] * data.sizes["key"]
    left, top = (fonts.label_width(selection.token_texts(data, side)) for side in ("query", "key"))
    down, across = (1, 1) if shared else grid  # how often tokens are written
    below = width is not None and width < theme.NARROW
    line = theme.text_size("note") / 72
    beside = across * 2.2 * line + (0.1 if below else 0.7 + 2.4 * line) + 0.15 * (grid[1] - 1)
    above = down * 2.2 * line + 0.35 + extra + 0.3 * (grid[0] - 1)
    if below and grid != (2, 2):  # the colour bar of three panels is in place of the fourth
        above += scales.BELOW
    limits = theme.PAGE if width is None else (width, max(theme.PAGE[1], 1.3 * width))
    left, top = across * left, down * top
    cell = min(_fit_cell(limits[0] - beside, columns, left), _fit_cell(limits[1] - above, rows, top))
    if width is None:
        longest = max(data.sizes["query"], data.sizes["key"])
        cell = min(cell, max(MAX_CELL, SMALLEST_NATURAL / longest), max(MIN_CELL, 4.2 / longest))
    if cell * data.sizes["key"] < SMALLEST_PANEL * min(1.0, data.sizes["key"] / 3):
        raise too_narrow(limits[0])
    size = font_size(cell)
    natural = (columns * cell + left * size + beside, rows * cell + top * size + above)
    return MapLayout(cell, (natural[0] if width is None else width, natural[1]), below)


def _fit_cell(free: float, count: int, label: float) -> float:
    """Return the side of `count` cells that share `free` inches with labels of a width in inches per point."""
    smallest, largest = theme.MIN_FONT_SIZE, theme.text_size("label")
    between = free / (count + POINTS_PER_CELL * label)
    if between * POINTS_PER_CELL < smallest:
        return (free - smallest * label) / count
    return max(between, (free - largest * label) / count) if between * POINTS_PER_CELL > largest else between


def fit_rows(count: int, tallest: float, around: float) -> float:
    """Return the height in inches of each of `count` rows of tokens, at most `tallest`.

    With `around` inches of titles and notes, all rows fit a page.
    """
    return min(max(4.2 / count, 0.105), tallest, (theme.PAGE[1] - around) / count)


def fit_label_size(row: float, labels: float, width: float) -> float:
    """Return the font size of tokens beside rows, smaller where `labels` would take more than half of the width.

    `labels` is in inches per point of font size.
    """
    return max(theme.MIN_FONT_SIZE, min(font_size(row), 0.5 * width / max(labels, 1e-6)))


def too_narrow(width: float) -> InputError:
    """Return the error for a figure whose labels leave no width for its cells."""
    return InputError(f"size={width:g} inches is too narrow for the labels of this figure. Give a larger size.")
