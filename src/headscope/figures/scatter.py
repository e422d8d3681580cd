"""One quantity against another, or one lens against another: a dot for every head."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib import figure as canvases
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.lines import Line2D

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure
from headscope.plotting import canvas, heat, pick, series, theme
from headscope.results import measured

MARKS = "os^D"  # one layer after the other, so that neighbours differ without colour
LISTED = 12  # layers in a legend; more have a colour bar


@dataclass(frozen=True)
class Scatter(Figure):
    """A dot for every head, coloured by layer: `x` against `y`, or one lens against the next.

    Without `y` it is the same variable through another lens, `against`, where there are two; otherwise the next
    variable. `at` chooses places along further axes. The heads that lie farthest out are named, `labels` of them.
    Where both axes are the same quantity a line shows where they are equal. `size` is the width in inches.
    """

    x: str | None = None
    y: str | None = None
    lens: str | None = None
    against: str | None = None
    at: tuple[str, ...] = ()
    labels: int = 5
    title: str | None = None
    size: float | None = None

    @theme.applied()
    def __call__(
        self,
        data: xr.Dataset,
        *,
        ax: Axes | None = None,
        figure: canvases.Figure | canvases.SubFigure | None = None,
    ) -> canvases.Figure:
        """The dots of two quantities."""
        first, second = self._sides(data)
        table = xr.Dataset({"x": first["value"].isel(lens=0, drop=True), "y": second["value"].isel(lens=0, drop=True)})
        table = table.transpose("layer", "head")
        same = first.attrs["variable"] == second.attrs["variable"]
        wide = self.size if self.size is not None else 3.9
        place = canvas.one_panel("scatter", ax, figure, (wide, max(2.4, wide * 0.82)))
        _draw_dots(place, table)
        _name_outliers(place, table, self.labels, same=same)
        if same:
            _draw_equal(place)
        series.plain(place, "both")
        lenses = [str(each["lens"].values[0]) for each in (first, second)]
        apart = lenses[0] != lenses[1]
        place.set_xlabel(_axis(first, lenses[0] if apart else ""))
        place.set_ylabel(_axis(second, lenses[1] if apart else ""))
        title = measured.name(first, f"and {second.attrs['variable'].replace('_', ' ')}")
        both = f"{_words(first)}: {lenses[1]} against {lenses[0]}"
        place.set_title(self.title if self.title is not None else both if same else title)
        _say(place, table, first)
        return canvas.root(place.figure)

    def _sides(self, data: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
        """What lies along x and along y."""
        pick.need(data)
        whole = measured.opened(data)
        known = [name for name in measured.names(whole) if not measured.further(measured.part(whole, name, at=()))]
        x = self.x if self.x is not None else known[0] if known else None
        lenses = [str(each) for each in whole["lens"].values]
        lens = self.lens if self.lens is not None else lenses[0]
        others = [each for each in lenses if each != lens]
        y = self.y if self.y is not None else x if others else next((each for each in known if each != x), None)
        against = self.against if self.against is not None else others[0] if y == x and others else lens
        if y is None or (y, against) == (x, lens):
            raise InputError(
                f"The figure 'scatter' needs two things to compare, but this data has only '{x}' through the lens "
                f"{lens}. Give y= another variable, or measure with a second lens."
            )
        _check_axes(whole, (x, y), self.at)
        sides = []
        for variable, seen in ((x, lens), (y, against)):
            chosen = measured.part(whole, variable, lens=seen, at=_that_apply(whole, variable, self.at))
            measured.closed("scatter", chosen)
            sides.append(chosen)
        return sides[0], sides[1]


def spearman(x: heat.Cells, y: heat.Cells) -> float:
    """The correlation of ranks, ties at their mean rank; NaN for fewer than three, or where one never changes.

    >>> spearman(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0, 9.0, 8.0]))
    0.8
    """
    both = np.isfinite(x) & np.isfinite(y)
    ranks = np.stack([pd.Series(each[both]).rank().to_numpy() for each in (x, y)])
    if both.sum() < 3 or (np.ptp(ranks, axis=1) == 0).any():
        return float("nan")
    return round(float(np.corrcoef(ranks)[0, 1]), 12)


def _draw_dots(ax: Axes, table: xr.Dataset) -> None:
    """Darker is deeper; shapes take turns."""
    layers = [int(each) for each in table["layer"].values]
    shades = theme.weights(np.linspace(0.22, 0.95, len(layers)))
    handles = []
    for index, layer in enumerate(layers):
        look: dict[str, Any] = {"marker": MARKS[index % len(MARKS)], "linestyle": "none", "markersize": 4.2}
        look |= {"color": shades[index], "markeredgecolor": theme.ink, "markeredgewidth": 0.35}
        ax.plot(table["x"].values[index], table["y"].values[index], zorder=3, **look)
        handles.append(Line2D([], [], label=f"L{layer}", **look))
    if 1 < len(layers) <= LISTED:
        spacing = {"handletextpad": 0.1, "borderaxespad": 0.1, "labelspacing": 0.25, "handlelength": 1.4}
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), **spacing)
    elif len(layers) > LISTED:
        scale = ScalarMappable(Normalize(min(layers), max(layers)), ListedColormap(shades))
        bar = ax.figure.colorbar(scale, ax=ax, pad=0.02, aspect=30)
        bar.set_label("layer", fontsize=theme.LABEL)
        bar.ax.tick_params(labelsize=theme.NOTE, width=0.5, length=2.5)
        bar.outline.set_linewidth(0.5)


def _draw_equal(ax: Axes) -> None:
    """Where both are the same, over the range that both share."""
    ends = [float(end) for end in (*ax.get_xlim(), *ax.get_ylim())]
    low, high = max(ends[0], ends[2]), min(ends[1], ends[3])
    if low < high:
        ax.set(xlim=ends[:2], ylim=ends[2:])
        ax.plot([low, high], [low, high], color=theme.quiet, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1)


def _name_outliers(ax: Axes, table: xr.Dataset, many: int, *, same: bool) -> None:
    """The heads farthest from equality, or else from the middle in units of the spread."""
    x, y = (table[name].values.ravel() for name in ("x", "y"))
    if not np.isfinite(x + y).any():
        return
    far = np.abs(y - x) if same else np.hypot(*(_spread(each) for each in (x, y)))
    order = np.argsort(-np.nan_to_num(far, nan=-1.0), kind="stable")
    ax.margins(0.13, 0.08)
    halo = [patheffects.withStroke(linewidth=1.6, foreground="#ffffff")]
    for place in apart(x, y, order[np.nan_to_num(far[order]) > 0], many):
        layer, head = divmod(int(place), table.sizes["head"])
        right = x[place] >= np.nanmedian(x)  # outwards, where fewer dots lie
        ax.annotate(
            f"L{int(table['layer'][layer])}H{int(table['head'][head])}",
            (x[place], y[place]),
            xytext=(4 if right else -4, 2),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize=6.5,
            path_effects=halo,
            zorder=4,
        )


def apart(x: heat.Cells, y: heat.Cells, order: Any, many: int) -> list[int]:
    """The first `many` places in order whose names would not lie on one another."""
    wide, high = (float(np.nanmax(each) - np.nanmin(each)) or 1.0 for each in (x, y))
    kept: list[int] = []
    for place in order:
        near = [abs(x[place] - x[each]) < 0.14 * wide and abs(y[place] - y[each]) < 0.05 * high for each in kept]
        if len(kept) < many and not any(near):
            kept.append(int(place))
    return kept


def _spread(values: heat.Cells) -> heat.Cells:
    apart = values - np.nanmedian(values)
    return np.asarray(apart / (np.nanmedian(np.abs(apart)) or 1.0))


def _say(ax: Axes, table: xr.Dataset, first: xr.Dataset) -> None:
    """How strongly the two go together, over how many heads."""
    x, y = (table[name].values.ravel() for name in ("x", "y"))
    rho, many = spearman(x, y), int(np.isfinite(x + y).sum())
    count = f"; {measured.counted(first)} examples" if "n" in first else ""
    corner = f"Spearman {rho:.2f}, {many} heads{count}" if np.isfinite(rho) else f"{many} heads{count}"
    ax.text(0.0, 1.01, corner.replace("-", "−"), transform=ax.transAxes, fontsize=theme.NOTE, color=theme.quiet)
    ax.set_title(ax.get_title(), pad=16)


def _axis(chosen: xr.Dataset, lens: str) -> str:
    at = f", {chosen.attrs['at']}" if chosen.attrs["at"] else ""
    return f"{chosen.attrs['label']}{at}" + (f" · {lens}" if lens else "")


def _words(chosen: xr.Dataset) -> str:
    return " · ".join(each for each in (chosen.attrs["variable"].replace("_", " "), chosen.attrs["at"]) if each)


def _check_axes(data: xr.Dataset, variables: tuple[str | None, ...], at: tuple[str, ...]) -> None:
    """Refuse a choice along an axis that neither variable has."""
    named = " or ".join(f"'{name}'" for name in dict.fromkeys(variables))
    axes = {str(dim) for name in variables if name in data for dim in data[name].dims}
    for each in at:
        if (axis := each.partition("=")[0].strip()) not in axes:
            raise unknown_name(f"axis of {named}", axis, axes)


def _that_apply(data: xr.Dataset, variable: str | None, at: tuple[str, ...]) -> tuple[str, ...]:
    """Of the choices those along axes that this variable has."""
    dims = set(data[variable].dims) if variable in data else set(data.dims)
    return tuple(each for each in at if each.partition("=")[0].strip() in dims)
