"""Attention maps as heat maps: queries down, keys across."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, FuncNorm, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, StrMethodFormatter

from headscope.core.errors import InputError
from headscope.plotting import canvas, fonts, selection, theme

Cells = np.ndarray[Any, np.dtype[np.float64]]

MAX_FONT_SIZE, MIN_FONT_SIZE = 9.0, 2.0  # points; below the minimum only some tokens are labelled
POINTS_PER_CELL = 0.8 * 72  # font size for each inch of cell
MAX_WIDTH = 24.0  # inches of cells
MARGINS = (1.5, 0.75)  # inches beside cells and tick labels: axis label and colour bar; axis label and title

Spacing = Literal["linear", "root"]
"""How colours follow weights; with square roots, small weights stay visible beside large ones."""


@dataclass(frozen=True)
class ColourScale:
    """A norm and a colour map."""

    norm: Normalize
    colours: Colormap

    def rgba(self, numbers: Cells) -> Cells:
        """Return red, green, blue and opacity of each number."""
        flat = self.colours(np.asarray(self.norm(np.ravel(numbers))))
        return np.asarray(flat).reshape(*np.shape(numbers), 4)


def weight_scale(weights: Cells, *, signed: bool, spacing: Spacing = "linear") -> ColourScale:
    """Return a scale from 0 to the largest weight, symmetric around 0 where weights are signed."""
    sizes = np.abs(weights[np.isfinite(weights)])
    largest = float(sizes.max()) if sizes.size and sizes.max() > 0 else 1.0
    ends = (-largest if signed else 0.0, largest)
    norm = FuncNorm((signed_root, signed_square), *ends) if spacing == "root" else Normalize(*ends)
    return ColourScale(norm, theme.signed if signed else theme.weights)


def signed_root(numbers: Cells) -> Cells:
    """Return the square root of the absolute value, with the sign of the number."""
    return np.sign(numbers) * np.sqrt(np.abs(numbers))


def signed_square(numbers: Cells) -> Cells:
    """Return the square, with the sign of the number."""
    return np.sign(numbers) * np.square(numbers)


def draw_cells(ax: Axes, weights: Cells, scale: ColourScale) -> None:
    """Draw the cells, hatched where the weight is NaN, with guide lines for large maps."""
    draw_image(ax, weights, scale, zorder=1)
    rows, columns = weights.shape
    if max(rows, columns) > 20:
        lines: dict[str, Any] = {"color": theme.faint, "linewidth": 0.3, "zorder": 2}
        ax.hlines(np.arange(9.5, rows - 1, 10), -0.5, columns - 0.5, **lines)
        ax.vlines(np.arange(9.5, columns - 1, 10), -0.5, rows - 0.5, **lines)


def draw_image(ax: Axes, table: Cells, scale: ColourScale, **options: Any) -> None:
    """Draw a table as square coloured cells, hatched where it is NaN."""
    hatch_missing(ax, table)
    ax.imshow(table, norm=scale.norm, cmap=scale.colours, aspect="equal", interpolation="nearest", **options)


def hatch_missing(ax: Axes, table: Cells) -> None:
    """Draw a hatched background where some cells are NaN, which are transparent."""
    if np.isnan(table).any():
        look: dict[str, Any] = {"facecolor": theme.hidden, "edgecolor": theme.hatch, "hatch": "/////", "linewidth": 0}
        ax.add_patch(Rectangle((0, 0), 1, 1, transform=ax.transAxes, zorder=0, **look))


def label_tokens(axis: Axis, data: xr.Dataset, side: str, cell: float) -> None:
    """Label rows or columns of `cell` inches with their tokens; special tokens are bold."""
    size = font_size(cell)
    step = int(np.ceil(size / max(cell * POINTS_PER_CELL, 1e-3) - 1e-9))
    positions = range(0, data.sizes[side], step)
    axis.set_major_locator(FixedLocator(list(positions)))
    axis.set_major_formatter(fonts.TokenFormatter(selection.token_texts(data, side)))
    axis.set_tick_params(length=0, pad=2, labelsize=size)
    bold, families = selection.special_tokens(data, side), [*fonts.font_families(), "sans-serif"]
    for position, tick in zip(positions, axis.get_major_ticks(len(positions)), strict=True):
        for text in (tick.label1, tick.label2):
            weight = "bold" if bold[position] else "normal"
            text.set(parse_math=False, fontfamily=families, fontweight=weight)


def font_size(cell: float) -> float:
    """Return the font size of tokens beside cells of that many inches."""
    return max(MIN_FONT_SIZE, min(MAX_FONT_SIZE, cell * POINTS_PER_CELL))


def label_axes(ax: Axes, data: xr.Dataset, cell: float, *, queries: bool = True) -> None:
    """Label key tokens on top and query tokens on the left."""
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    label_tokens(ax.xaxis, data, "key", cell)
    ax.xaxis.set_tick_params(labelrotation=90)
    ax.set_xlabel("key: attended to", color=theme.quiet)
    label_tokens(ax.yaxis, data, "query", cell)
    ax.yaxis.set_tick_params(labelleft=queries)
    if queries:
        ax.set_ylabel("query: attends", color=theme.quiet)


def add_colour_bar(ax: Axes, scale: ColourScale, text: str, box: tuple[float, float]) -> None:
    """Add a colour bar of at most three inches beside axes of `box` inches, without shrinking them."""
    width, height = box
    share = min(1.0, 3.0 / height)
    bar_axes = ax.inset_axes((1 + 0.1 / width, 1 - share, 0.12 / width, share))
    bar = ax.figure.colorbar(ScalarMappable(scale.norm, scale.colours), cax=bar_axes)
    spacing = " (square-root colour scale)" if isinstance(scale.norm, FuncNorm) else ""
    bar.set_label(canvas.wrap_text(text + spacing, share * height, theme.LABEL), fontsize=theme.LABEL)
    bar.ax.tick_params(labelsize=theme.NOTE, width=0.5, length=2.5)
    bar.outline.set_linewidth(0.5)
    if scale.norm.vmax is not None and scale.norm.vmax < 0.001:
        bar.formatter = StrMethodFormatter("{x:.1e}")  # by default the power of ten overlaps the key labels


def weight_label(maps: xr.Dataset) -> str:
    """Return what the weights of one lens are, for a colour bar."""
    return str(maps["quantity"].item()) if "quantity" in maps.coords else f"weight ({maps['lens'].item()})"


def cell_size(ax: Axes, shape: tuple[int, ...]) -> float:
    """Return the side in inches of square cells that fill the caller's axes."""
    width, height = canvas.axes_size(ax)
    return min(width / shape[1], height / shape[0])


def fit_heatmap(
    data: xr.Dataset, width: float | None, *, panels: int = 1, extra: float = 0.0
) -> tuple[float, tuple[float, float]]:
    """Return the side of a cell and the size of the figure, in inches, for panels side by side.

    Cells shrink with longer texts and with a given `width`; `extra` is height for titles and notes.
    """
    rows, columns = data.sizes["query"], panels * data.sizes["key"]
    left, top = (fonts.label_width(selection.token_texts(data, side)) for side in ("query", "key"))
    gaps = 0.15 * (panels - 1)
    if width is None:
        cell = min(max(4.2 / max(rows, data.sizes["key"]), 0.12), 0.34, MAX_WIDTH / columns, MAX_WIDTH / rows)
    else:
        free = width - MARGINS[0] - gaps
        cell = max(free / (columns + POINTS_PER_CELL * left), (free - MAX_FONT_SIZE * left) / columns)
        if cell <= 0:
            raise too_narrow(width)
    size = font_size(cell)
    return cell, (columns * cell + gaps + left * size + MARGINS[0], rows * cell + top * size + MARGINS[1] + extra)


def fit_rows(count: int, tallest: float) -> float:
    """Return the height in inches of each of `count` rows of tokens, at most `tallest`."""
    return min(max(4.2 / count, 0.135), tallest, MAX_WIDTH / count)


def too_narrow(width: float | None) -> InputError:
    """Return the error for a figure whose labels leave no width for its cells."""
    return InputError(f"size={width:g} inches is too narrow for the labels of this figure. Give a larger size.")
