"""A coloured cell for each head, layers down and heads across, with its number where there is room."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from headscope.plotting import heat, theme

Marks = np.ndarray[Any, np.dtype[np.int8]]
"""1 for a cell to mark."""

SMALLEST_NUMBER = 4.0
"""Numbers of a smaller size than this, in points, are left out."""

LARGEST_NUMBER = 8.0


def draw_numbers(
    ax: Axes,
    table: heat.Cells,
    scale: heat.Scale,
    texts: list[list[str]],
    size: float,
    marked: Marks | None = None,
) -> None:
    """The cells and their numbers of so many points, bold where marked; too small to read, marked cells have a dot."""
    heat.hide(ax, table)
    ax.imshow(table, norm=scale.norm, cmap=scale.colours, aspect="equal", interpolation="nearest")
    for (row, column), value in np.ndenumerate(table):
        bold = marked is not None and bool(marked[row, column])
        ink = theme.ink_on(scale.paint(np.array(value))) if np.isfinite(value) else theme.quiet
        if size >= SMALLEST_NUMBER:
            weight = "bold" if bold else "normal"
            text = texts[row][column]
            ax.text(column, row, text, ha="center", va="center", fontsize=size, color=ink, fontweight=weight)
        elif bold:
            ax.plot(column, row, marker="o", markersize=0.9 * size, color=ink, markeredgewidth=0)


def number_size(texts: list[list[str]], cell: float, *, bold: bool = False) -> float:
    """The points in which the longest number fits a cell of so many inches."""
    letters = max(len(text) for row in texts for text in row)
    return min(LARGEST_NUMBER, cell * 72 / ((0.8 if bold else 0.7) * letters))


def written(table: heat.Cells) -> list[list[str]]:
    """Numbers as short text: whole ones whole, small ones as .012, tiny ones with a power of ten, others as 0.12."""
    finite = table[np.isfinite(table)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    if (finite == finite.round()).all() or largest >= 1000:
        form = ".0f"
    else:
        form = ".1f" if largest >= 100 else ".2f" if largest >= 0.1 else ".3f" if largest >= 0.01 else ".1e"
    return [[_number(each, form) if np.isfinite(each) else "–" for each in row] for row in table]


def _number(value: float, form: str) -> str:
    """With a minus as wide as a plus, and none before zero."""
    text = format(value, form)
    if form == ".1e":
        return text
    sign = "−" if text.startswith("-") and text.strip("-0.") else ""
    digits = text.removeprefix("-")
    return sign + (digits.removeprefix("0") if form == ".3f" else digits)


def value_scale(table: heat.Cells, *, signed: bool = False) -> heat.Scale:
    """From the smallest to the largest value; both ways from zero where some are negative."""
    finite = table[np.isfinite(table)]
    if signed or (finite.size and finite.min() < 0):
        return heat.scale(table, signed=True)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return heat.Scale(Normalize(low if low < high else 0.0, high if high > 0 else 1.0), theme.weights)


def name_heads(ax: Axes, one: xr.Dataset, cell: float | None = None, *, layers: bool = True) -> None:
    """Layers on the left, heads on top; only every second or so where they would run into each other."""
    for axis, letter, name in ((ax.xaxis, "H", "head"), (ax.yaxis, "L", "layer")):
        labels = [f"{letter}{int(each)}" for each in one[name].values]
        letters = max(map(len, labels)) if name == "head" else 1.6
        size = theme.NOTE if cell is None else max(5.0, min(theme.NOTE, cell * 72 / (0.8 * letters)))
        step = 1 if cell is None else int(np.ceil(size * 0.8 * letters / (cell * 72) - 1e-6))
        axis.set_ticks(range(0, len(labels), step), labels=labels[::step], fontsize=size)
        axis.set_tick_params(length=0, pad=2)
    ax.xaxis.tick_top()
    ax.yaxis.set_tick_params(labelleft=layers)
    ax.spines[:].set_visible(False)
