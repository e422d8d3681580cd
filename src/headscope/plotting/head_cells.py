"""One coloured cell for each head, layers down and heads across, with its number where the number fits."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from headscope.plotting import fonts, heatmap, scales, theme


def draw_head_cells(
    ax: Axes,
    table: scales.Cells,
    scale: scales.ColourScale,
    texts: list[list[str]],
    size: float,
    marked: np.ndarray[Any, np.dtype[np.int8]] | None = None,
) -> None:
    """Draw cells with numbers of font size `size`, bold where marked; if too small to read, marked cells have a dot."""
    heatmap.draw_image(ax, table, scale)
    for (row, column), value in np.ndenumerate(table):
        bold = marked is not None and bool(marked[row, column])
        ink = theme.text_colour(scale.rgba(np.array(value))) if np.isfinite(value) else theme.quiet
        if size >= theme.MIN_FONT_SIZE:
            weight = "bold" if bold else "normal"
            text = texts[row][column]
            look: dict[str, Any] = {"fontsize": size, "color": ink, "fontweight": weight}
            heatmap.write_in_cell(ax, (row, column), text, **look)
        elif bold:
            ax.plot(column, row, marker="o", markersize=0.9 * size, color=ink, markeredgewidth=0)


def fit_font_size(texts: list[list[str]], cell: float, *, bold: bool = False) -> float:
    """Return the font size at which the widest number fits a cell of so many inches."""
    widest = max(fonts.text_width(text) for text in {text for row in texts for text in row}) or 1.0
    return min(theme.text_size("note"), 0.9 * cell / (widest * (1.15 if bold else 1.0)))


def format_numbers(table: scales.Cells) -> list[list[str]]:
    """Format all numbers of a table alike: 12, 0.12, .012 or 1.2e-05, by the largest of them."""
    finite = table[np.isfinite(table)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    if (finite == finite.round()).all() or largest >= 1000:
        form = ".0f"
    else:
        form = ".1f" if largest >= 100 else ".2f" if largest >= 0.1 else ".3f" if largest >= 0.01 else ".1e"
    return [[_format(value, form) if np.isfinite(value) else "–" for value in row] for row in table]


def _format(value: float, form: str) -> str:
    """Format with a typographic minus, and without one for -0.00."""
    text = format(value, form)
    if form == ".1e":
        return text
    sign = "−" if text.startswith("-") and text.strip("-0.") else ""
    digits = text.removeprefix("-")
    return sign + (digits.removeprefix("0") if form == ".3f" else digits)


def value_scale(table: scales.Cells, *, signed: bool = False, cmap: scales.ColourMap = None) -> scales.ColourScale:
    """Return a scale from the smallest to the largest value, symmetric around 0 where some are negative."""
    finite = table[np.isfinite(table)]
    if signed or (finite.size and finite.min() < 0):
        largest = float(np.abs(finite).max()) if finite.size else 0.0
        return scales.weight_scale(table, signed=True, limit=largest or 1.0, cmap=cmap)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    norm = Normalize(low if low < high else 0.0, high if high > 0 else 1.0)
    return scales.ColourScale(norm, scales.find_colours(cmap, theme.weights))


def label_heads(ax: Axes, data: xr.Dataset, cell: float, *, layers: bool = True) -> None:
    """Label layers on the left and heads on top; labels that would overlap are skipped."""
    for axis, letter, name in ((ax.xaxis, "H", "head"), (ax.yaxis, "L", "layer")):
        averaged = "long_name" in data[name].attrs  # such as "mean of 12 heads"
        labels = ["all"] if averaged else [f"{letter}{int(label)}" for label in data[name].values]
        needed = fonts.label_width(labels) + 0.3 / 72 if name == "head" else 1.25 / 72  # inches per point
        size = max(theme.MIN_FONT_SIZE, min(theme.text_size("note"), cell / needed))
        step = int(np.ceil(size * needed / cell - 1e-6))
        axis.set_ticks(range(0, len(labels), step), labels=labels[::step], fontsize=size)
        axis.set_tick_params(length=0, pad=2)
    ax.xaxis.tick_top()
    ax.yaxis.set_tick_params(labelleft=layers)
    ax.spines[:].set_visible(False)
