"""One variable against another, or one lens against another: a dot for every head."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, head_dots, scales, selection, series, theme
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
        head_dots.draw_by_layer(ax, table, scales.find_colours(self.cmap, theme.weights))
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
    if np.isfinite(x + y).any():
        distance = np.abs(y - x) if same else np.hypot(_standardize(x), _standardize(y))
        head_dots.label_farthest(ax, table, distance, count, box, merged=is_merged(table["x"]))


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
