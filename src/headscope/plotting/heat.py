"""One attention map as a heat map: queries down, keys across."""

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
from headscope.plotting import canvas, fonts, pick, theme

Cells = np.ndarray[Any, np.dtype[np.float64]]

LARGEST_TYPE, SMALLEST_TYPE = 9.0, 2.0  # points; below the smallest, only some tokens are named
PER_CELL = 0.8 * 72  # points of type for each inch of cell


Spacing = Literal["linear", "root"]
"""How colours follow numbers; by their square root, small weights can still be seen beside large ones."""


@dataclass(frozen=True)
class Scale:
    """Which number has which colour."""

    norm: Normalize
    colours: Colormap

    def paint(self, numbers: Cells) -> Cells:
        """Red, green, blue and opacity of each number."""
        flat = self.colours(np.asarray(self.norm(np.ravel(numbers))))
        return np.asarray(flat).reshape(*np.shape(numbers), 4)


def scale(weights: Cells, *, signed: bool, spacing: Spacing = "linear") -> Scale:
    """From 0 up, or the same distance both ways where weights may be negative."""
    seen = np.abs(weights[np.isfinite(weights)])
    largest = float(seen.max()) if seen.size and seen.max() > 0 else 1.0
    ends = (-largest if signed else 0.0, largest)
    norm = FuncNorm((_root, _square), *ends) if spacing == "root" else Normalize(*ends)
    return Scale(norm, theme.signed if signed else theme.weights)


def _root(numbers: Cells) -> Cells:
    return np.sign(numbers) * np.sqrt(np.abs(numbers))


def _square(numbers: Cells) -> Cells:
    return np.sign(numbers) * np.square(numbers)


def draw_cells(ax: Axes, weights: Cells, scale: Scale) -> None:
    """The cells, with a hatch where a query could not see a key."""
    hide(ax, weights)
    ax.imshow(weights, norm=scale.norm, cmap=scale.colours, interpolation="nearest", aspect="equal", zorder=1)
    rows, columns = weights.shape
    if max(rows, columns) > 20:  # lines to follow from a label to its cell
        lines: dict[str, Any] = {"color": theme.faint, "linewidth": 0.3, "zorder": 2}
        ax.hlines(np.arange(9.5, rows - 1, 10), -0.5, columns - 0.5, **lines)
        ax.vlines(np.arange(9.5, columns - 1, 10), -0.5, rows - 0.5, **lines)


def hide(ax: Axes, weights: Cells) -> None:
    """A hatched ground, which shows through wherever there is no weight."""
    if np.isnan(weights).any():
        ground: dict[str, Any] = {
            "facecolor": theme.hidden,
            "edgecolor": theme.hatch,
            "hatch": "/////",
            "linewidth": 0,
        }
        ax.add_patch(Rectangle((0, 0), 1, 1, transform=ax.transAxes, zorder=0, **ground))


def name_tokens(axis: Axis, data: xr.Dataset, side: str, cell: float) -> None:
    """Every token beside its row or column; special ones are bold."""
    type_size = max(SMALLEST_TYPE, min(LARGEST_TYPE, cell * PER_CELL))
    step = int(np.ceil(type_size / max(cell * PER_CELL, 1e-3) - 1e-9))
    shown = range(0, data.sizes[side], step)
    axis.set_major_locator(FixedLocator(list(shown)))
    axis.set_major_formatter(fonts.Labels(pick.tokens(data, side)))
    axis.set_tick_params(length=0, pad=2, labelsize=type_size)
    bold = pick.special(data, side)
    for place, tick in zip(shown, axis.get_major_ticks(len(shown)), strict=True):
        for text in (tick.label1, tick.label2):
            text.set(
                parse_math=False,
                fontfamily=[*fonts.families(), "sans-serif"],
                fontweight="bold" if bold[place] else "normal",
            )


def name_sides(ax: Axes, data: xr.Dataset, cell: float, *, queries: bool = True) -> None:
    """Key tokens on top, query tokens on the left."""
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    name_tokens(ax.xaxis, data, "key", cell)
    ax.xaxis.set_tick_params(labelrotation=90)
    ax.set_xlabel("key: attended to", color=theme.quiet)
    name_tokens(ax.yaxis, data, "query", cell)
    ax.yaxis.set_tick_params(labelleft=queries)
    if queries:
        ax.set_ylabel("query: attends", color=theme.quiet)


def bar(ax: Axes, scale: Scale, text: str, box: tuple[float, float]) -> None:
    """The colour bar beside axes of `box` inches; it takes no room from them, and is three inches at most."""
    wide, tall = box
    high = min(1.0, 3.0 / tall)
    beside = ax.inset_axes((1 + 0.1 / wide, 1 - high, 0.12 / wide, high))
    drawn = ax.figure.colorbar(ScalarMappable(scale.norm, scale.colours), cax=beside)
    spaced = " (square-root colour scale)" if isinstance(scale.norm, FuncNorm) else ""
    drawn.set_label(canvas.wrapped(text + spaced, high * tall, theme.LABEL), fontsize=theme.LABEL)
    drawn.ax.tick_params(labelsize=theme.NOTE, width=0.5, length=2.5)
    drawn.outline.set_linewidth(0.5)
    if (
        scale.norm.vmax is not None and scale.norm.vmax < 0.001
    ):  # otherwise the power of ten stands above the bar, in the labels
        drawn.formatter = StrMethodFormatter("{x:.1e}")


def quantity(lens: str) -> str:
    """What the numbers of a lens are, as a colour bar says it."""
    name = lens.partition(":")[0]
    return _QUANTITIES.get(name, f"weight ({lens})")


_QUANTITIES = {
    "raw": "attention weight",
    "effective": "effective attention",
    "null": "attention that never reaches the output",
    "norm": "norm of the weighted value",
}


def cell_in(ax: Axes, shape: tuple[int, ...]) -> float:
    """The size of a cell, in inches, in axes that the caller gives."""
    wide, tall = canvas.inches(ax)
    return min(wide / shape[1], tall / shape[0])


@dataclass(frozen=True)
class Room:
    """How large a cell can be, and the figure around it, in inches."""

    cell: float
    size: tuple[float, float]


WIDEST = 24.0  # inches of cells
AROUND = (1.5, 0.75)  # beside the cells and their labels: axis name and colour bar; axis name and title


def room(data: xr.Dataset, size: float | None, *, panels: int = 1, extra: float = 0.0) -> Room:
    """Room for panels side by side, with `extra` inches for titles and notes.

    Cells are large for short texts, and smaller where the figure would be too wide; or it is `size` wide.
    """
    rows, columns = data.sizes["query"], data.sizes["key"]
    left, top = (fonts.width(pick.tokens(data, side)) for side in ("query", "key"))
    many = columns * panels
    gaps = 0.15 * (panels - 1)
    if size is None:
        cell = min(max(4.2 / max(rows, columns), 0.12), 0.34, WIDEST / many, WIDEST / rows)
    else:
        free = size - AROUND[0] - gaps
        cell = max(free / (many + PER_CELL * left), (free - LARGEST_TYPE * left) / many)
        if cell <= 0:
            raise InputError(f"A figure {size} inches wide has no room beside its labels. Give a larger size.")
    type_size = max(SMALLEST_TYPE, min(LARGEST_TYPE, cell * PER_CELL))
    wide = many * cell + gaps + left * type_size + AROUND[0]
    return Room(cell, (wide, rows * cell + top * type_size + AROUND[1] + extra))
