"""A dot for every head, coloured by layer or by name, and labels of the outermost heads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from headscope.plotting import fonts, scales, series, theme

MARKERS = "os^D"  # by layer, so that neighbours differ in grey print
MAX_LEGEND = 12  # layers in a legend; for more there is a colour bar
OTHER = "other"
"""The name of what has no name of its own, drawn in grey."""

BEHAVIOURS = ("previous", "next", "broad", "[SEP]", "[CLS]", "itself")
"""Names that look the same in all figures."""

Look = Mapping[str, Any]


def layer_looks(count: int, colours: Colormap = theme.weights) -> list[Look]:
    """Return the colour and marker of each layer: darker in deeper layers."""
    shades = colours(np.linspace(0.22, 0.95, count))
    return [{"color": shade, "marker": MARKERS[index % len(MARKERS)]} for index, shade in enumerate(shades)]


def name_looks(names: Sequence[str]) -> dict[str, Look]:
    """Return a colour and marker for each name; "other" is last, and grey."""
    known = [name for name in BEHAVIOURS if name in names]
    own = sorted(set(names) - {OTHER, *BEHAVIOURS})
    series.styles([*known, *own], "names of heads")  # raises an error for too many
    taken = [BEHAVIOURS.index(name) for name in known]
    free = [index for index in range(len(series.STYLES)) if index not in taken]
    looks: dict[str, Look] = {}
    for name, index in zip([*known, *own], [*taken, *free], strict=False):
        looks[name] = {"color": series.STYLES[index].colour, "marker": series.STYLES[index].mark}
    return looks | ({OTHER: {"color": theme.faint, "marker": "o"}} if OTHER in names else {})


def draw_by_layer(ax: Axes, table: xr.Dataset, colours: Colormap) -> None:
    """Draw dots at `x` and `y` that are darker in deeper layers, with alternating markers."""
    layers = [int(layer) for layer in table["layer"].values]
    looks = layer_looks(len(layers), colours)
    for index, look in enumerate(looks):
        _draw_dots(ax, table["x"].values[index], table["y"].values[index], look)
    if 1 < len(layers) <= MAX_LEGEND:
        add_legend(ax, {f"L{layer}": look for layer, look in zip(layers, looks, strict=True)})
    elif len(layers) > MAX_LEGEND:
        shades = [look["color"] for look in looks]
        scale = ScalarMappable(Normalize(min(layers), max(layers)), ListedColormap(shades))
        bar = ax.figure.colorbar(scale, cax=ax.inset_axes((1.03, 0.0, 0.035, 1.0)), ticks=MaxNLocator(8, integer=True))
        bar.set_label("layer", fontsize=theme.text_size("note"))
        bar.ax.tick_params(labelsize=theme.text_size("note"), width=0.5, length=2.5)
        bar.outline.set_linewidth(0.5)


def draw_by_name(ax: Axes, table: xr.Dataset, names: xr.DataArray) -> None:
    """Draw dots at `x` and `y` with a colour and marker for each name."""
    texts = np.asarray(names.transpose("layer", "head").values, dtype=str)
    looks = name_looks(texts.ravel().tolist())
    for name, look in looks.items():
        _draw_dots(ax, table["x"].values[texts == name], table["y"].values[texts == name], look)
    add_legend(ax, {fonts.to_label(name): look for name, look in looks.items()})


def add_legend(ax: Axes, looks: Mapping[str, Look]) -> None:
    """Add a legend to the right of the axes."""
    handles = [Line2D([], [], label=label, **_style(look)) for label, look in looks.items()]
    spacing = {"handletextpad": 0.1, "borderaxespad": 0.1, "labelspacing": 0.25, "handlelength": 1.4}
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), **spacing)


def label_size() -> tuple[float, float]:
    """Return the width and height of the label of a head in inches."""
    size = theme.text_size("small")
    return fonts.label_width(["L00H00"]) * size + 0.06, 1.3 * size / 72


def label_farthest(
    ax: Axes,
    table: xr.Dataset,
    distance: scales.Cells,
    count: int,
    box: tuple[float, float],
    *,
    filled: tuple[float, float] = (0.7, 0.8),
    merged: bool = False,
) -> None:
    """Label the `count` heads of the largest distance whose labels do not overlap, in axes of `box` inches.

    `filled` is the share of the axes' width and height that the dots fill. `merged` heads are one for each layer.
    """
    x, y = (table[name].values.ravel() for name in ("x", "y"))
    order = np.argsort(-np.nan_to_num(distance, nan=-1.0), kind="stable")
    label = label_size()
    ax.margins(min(0.35, label[0] / box[0]), 0.08)
    halo = [patheffects.withStroke(linewidth=1.6, foreground="#ffffff")]
    shares = label[0] / (filled[0] * box[0]), label[1] / (filled[1] * box[1])  # of the range of the dots
    for index in select_apart(x, y, order[np.nan_to_num(distance[order]) > 0], count, shares):
        layer, head = divmod(index, table.sizes["head"])
        right = x[index] >= np.nanmedian(x)  # outwards, where there are fewer dots
        ax.annotate(
            f"L{int(table['layer'][layer])}" + ("" if merged else f"H{int(table['head'][head])}"),
            (x[index], y[index]),
            xytext=(4 if right else -4, 2),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize=theme.text_size("small"),
            path_effects=halo,
            zorder=4,
        )


def select_apart(x: scales.Cells, y: scales.Cells, order: Any, count: int, label: tuple[float, float]) -> list[int]:
    """Return the first `count` indices in order whose labels would not overlap.

    `label` is the width and height of a label, as shares of the ranges of x and y.
    """
    width, height = (float(np.nanmax(values) - np.nanmin(values)) or 1.0 for values in (x, y))
    chosen: list[int] = []
    for index in order:
        near = [
            abs(x[index] - x[k]) < 2 * label[0] * width and abs(y[index] - y[k]) < label[1] * height for k in chosen
        ]
        if len(chosen) < count and not any(near):
            chosen.append(int(index))
    return chosen


def _draw_dots(ax: Axes, x: scales.Cells, y: scales.Cells, look: Look) -> None:
    ax.plot(x, y, zorder=3, **_style(look))


def _style(look: Look) -> dict[str, Any]:
    return {"linestyle": "none", "markersize": 4.2, "markeredgecolor": theme.ink, "markeredgewidth": 0.35, **look}
