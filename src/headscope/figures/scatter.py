"""One variable against another, or one lens against another: a dot for every head."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, fonts, scales, selection, series, theme
from headscope.results.select import (
    check_same_heads,
    further_axes,
    head_variables,
    is_merged,
    require_shown_axes,
    restore_axes,
    select_variable,
)
from headscope.results.summarize import format_count, make_title
from headscope.uncertainty.correlation import spearman

MARKERS = "os^D"  # by layer, so that neighbours differ in grey print
MAX_LEGEND = 12  # layers in a legend; for more there is a colour bar


@dataclass(frozen=True)
class Scatter(Figure):
    """A dot for every head, coloured by layer: `x` against `y`, or one lens against another.

    Without `y` it is the same variable through another lens, `against`, where there are two, and otherwise the next
    variable. `at` selects labels along further axes. The `labels` outermost heads are labelled. Where both axes show
    the same variable, a line marks equal values. `cmap` is a colour map of matplotlib, `size` the width in inches.
    """

    x: str | None = None
    y: str | None = None
    lens: str | None = None
    against: str | None = None
    at: tuple[str, ...] = ()
    labels: int = 5
    title: str | None = None
    size: float | None = None
    cmap: scales.ColourMap = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the dots of two variables."""
        x, y = self._select_axes(data)
        table = xr.Dataset({"x": x["value"].isel(lens=0, drop=True), "y": y["value"].isel(lens=0, drop=True)})
        table = table.transpose("layer", "head")
        same = x.attrs["variable"] == y.attrs["variable"]
        width = self.size if self.size is not None else 3.9
        height = min(4.2, max(2.6, width * 0.82))
        ax = target.open_axes(width, height)
        box = (width - 1.15, height - 0.95) if target.is_new else canvas.axes_size(ax)
        _draw_dots(ax, table, scales.find_colours(self.cmap, theme.weights))
        _label_outliers(ax, table, self.labels, box, same=same)
        if same:
            _draw_diagonal(ax)
        series.style_axes(ax, "both")
        lenses = [str(side["lens"].values[0]) for side in (x, y)]
        differ = lenses[0] != lenses[1]
        size = theme.text_size("label")
        ax.set_xlabel(canvas.wrap_text(_axis_label(x, lenses[0] if differ else ""), box[0], size))
        ax.set_ylabel(canvas.wrap_text(_axis_label(y, lenses[1] if differ else ""), box[1], size))
        if same:
            name = " · ".join(filter(None, (x.attrs["variable"].replace("_", " "), x.attrs["at"])))
            title = f"{name}: {lenses[1]} against {lenses[0]}"
        else:
            title = make_title(x, f"and {y.attrs['variable'].replace('_', ' ')}")
        note = theme.text_size("note")
        facts = canvas.wrap_text(_describe_correlation(table, x), box[0] + 0.3, note)
        ax.text(0.0, 1.01, facts, transform=ax.transAxes, fontsize=note, color=theme.quiet)
        pad = 5 + 1.2 * note * len(facts.split("\n"))
        canvas.set_title(ax, self.title if self.title is not None else title, box[0] + 0.3, loc="left", pad=pad)

    def _select_axes(self, data: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
        """Return the variables and lenses along x and y."""
        selection.require_variables(data)
        whole = restore_axes(data)
        known = [name for name in head_variables(whole) if not further_axes(select_variable(whole, name, at=()))]
        x = self.x if self.x is not None else known[0] if known else None
        lenses = [str(name) for name in whole["lens"].values]
        lens = self.lens if self.lens is not None else lenses[0]
        others = [name for name in lenses if name != lens]
        y = self.y if self.y is not None else x if others else next((name for name in known if name != x), None)
        against = self.against if self.against is not None else others[0] if y == x and others else lens
        if y is None or (y, against) == (x, lens):
            raise InputError(
                f"The figure 'scatter' needs two things to compare, but this data has only '{x}' through the lens "
                f"{lens}. Give y= another variable, or measure with a second lens."
            )
        axes = {choice: choice.partition("=")[0].strip() for choice in self.at}
        _check_axes(whole, (x, y), axes.values())
        sides = []
        for variable, name in ((x, lens), (y, against)):
            dims = set(whole[variable].dims) if variable in whole else set(whole.dims)
            at = tuple(choice for choice, axis in axes.items() if axis in dims)
            side = select_variable(whole, variable, lens=name, at=at)
            require_shown_axes("scatter", side)
            sides.append(side)
        check_same_heads(sides[0]["value"], sides[1]["value"], (lens, against))
        return sides[0], sides[1]


def _draw_dots(ax: Axes, table: xr.Dataset, colours: Colormap) -> None:
    """Draw dots that are darker in deeper layers, with alternating markers."""
    layers = [int(layer) for layer in table["layer"].values]
    shades = colours(np.linspace(0.22, 0.95, len(layers)))
    handles = []
    for index, layer in enumerate(layers):
        look: dict[str, Any] = {"marker": MARKERS[index % len(MARKERS)], "linestyle": "none", "markersize": 4.2}
        look |= {"color": shades[index], "markeredgecolor": theme.ink, "markeredgewidth": 0.35}
        ax.plot(table["x"].values[index], table["y"].values[index], zorder=3, **look)
        handles.append(Line2D([], [], label=f"L{layer}", **look))
    if 1 < len(layers) <= MAX_LEGEND:
        spacing = {"handletextpad": 0.1, "borderaxespad": 0.1, "labelspacing": 0.25, "handlelength": 1.4}
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), **spacing)
    elif len(layers) > MAX_LEGEND:
        scale = ScalarMappable(Normalize(min(layers), max(layers)), ListedColormap(shades))
        bar = ax.figure.colorbar(scale, cax=ax.inset_axes((1.03, 0.0, 0.035, 1.0)), ticks=MaxNLocator(8, integer=True))
        bar.set_label("layer", fontsize=theme.text_size("note"))
        bar.ax.tick_params(labelsize=theme.text_size("note"), width=0.5, length=2.5)
        bar.outline.set_linewidth(0.5)


def _draw_diagonal(ax: Axes) -> None:
    """Draw the line of equal values, over the range that both axes share."""
    ends = [float(end) for end in (*ax.get_xlim(), *ax.get_ylim())]
    low, high = max(ends[0], ends[2]), min(ends[1], ends[3])
    if low < high:
        ax.set(xlim=ends[:2], ylim=ends[2:])
        ax.plot([low, high], [low, high], color=theme.quiet, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1)


def _label_outliers(ax: Axes, table: xr.Dataset, count: int, box: tuple[float, float], *, same: bool) -> None:
    """Label the heads farthest from the diagonal, or else from the medians in units of the spread."""
    x, y = (table[name].values.ravel() for name in ("x", "y"))
    if not np.isfinite(x + y).any():
        return
    distance = np.abs(y - x) if same else np.hypot(_standardize(x), _standardize(y))
    order = np.argsort(-np.nan_to_num(distance, nan=-1.0), kind="stable")
    size = theme.text_size("small")
    label = (fonts.label_width(["L00H00"]) * size + 0.06, 1.3 * size / 72)  # inches
    ax.margins(min(0.35, label[0] / box[0]), 0.08)
    halo = [patheffects.withStroke(linewidth=1.6, foreground="#ffffff")]
    shares = label[0] / (0.7 * box[0]), label[1] / (0.8 * box[1])  # of the range of the dots, which margins surround
    for index in select_apart(x, y, order[np.nan_to_num(distance[order]) > 0], count, shares):
        layer, head = divmod(index, table.sizes["head"])
        right = x[index] >= np.nanmedian(x)  # outwards, where there are fewer dots
        ax.annotate(
            f"L{int(table['layer'][layer])}" + ("" if is_merged(table["x"]) else f"H{int(table['head'][head])}"),
            (x[index], y[index]),
            xytext=(4 if right else -4, 2),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize=size,
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


def _standardize(values: scales.Cells) -> scales.Cells:
    """Return deviations from the median in units of the median absolute deviation."""
    deviation = values - np.nanmedian(values)
    return np.asarray(deviation / (np.nanmedian(np.abs(deviation)) or 1.0))


def _describe_correlation(table: xr.Dataset, side: xr.Dataset) -> str:
    """Return the rank correlation and the number of heads, in words."""
    x, y = (table[name].values.ravel() for name in ("x", "y"))
    known = np.isfinite(x + y)
    heads = int(known.sum())
    rho = float(spearman(x[known], y[known])) if heads > 2 else np.nan
    count = f"; {format_count(side)} examples" if "n" in side else ""
    text = f"Spearman {rho:.2f}, {heads} heads{count}" if np.isfinite(rho) else f"{heads} heads{count}"
    return text.replace("-", "−")


def _axis_label(side: xr.Dataset, lens: str) -> str:
    at = f", {side.attrs['at']}" if side.attrs["at"] else ""
    return f"{side.attrs['label']}{at}" + (f" · {lens}" if lens else "")


def _check_axes(data: xr.Dataset, variables: tuple[str | None, ...], chosen: Iterable[str]) -> None:
    """Raise UnknownName for a choice along an axis that neither variable has."""
    names = " or ".join(f"'{name}'" for name in dict.fromkeys(variables))
    axes = {str(dim) for name in variables if name in data for dim in data[name].dims}
    for axis in chosen:
        if axis not in axes:
            raise unknown_name(f"axis of {names}", axis, axes)
