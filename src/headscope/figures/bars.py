"""Means with confidence intervals as bars along one axis, side by side for each lens."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.errors import unknown_name
from headscope.core.estimate import Estimate
from headscope.core.figure import Figure, Target
from headscope.plotting import series, theme
from headscope.results.select import further_axes, require_shown_axes, select_variable
from headscope.results.summarize import describe_mean, make_title, mean_over


@dataclass(frozen=True)
class Bars(Figure):
    """A bar for each label along one axis, such as type, role, offset, layer or head, and for each lens.

    `along` defaults to the variable's own axis, or else layer. A bar is the mean over all layers and heads that are not
    along it; `at` selects some of them, as layer=11+role=sep. Error bars are 95 % intervals over examples. `size` is
    the width in inches.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    along: str | None = None
    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the bars of one variable."""
        chosen = select_variable(data, self.variable, lens=self.lens, at=self.at)
        along = _select_axis(chosen, self.along)
        require_shown_axes("bars", chosen, along)
        over = [dim for dim in ("layer", "head") if dim != along]
        means = mean_over(chosen, over).transpose("lens", along, ...)
        lenses, labels = means["lens"].values, series.axis_labels(along, means[along].values)
        ax, width = series.open_axes(target, lenses, self.size, 0.8 + len(labels) * (0.1 + 0.13 * len(lenses)))
        _draw_bars(ax, means)
        series.label_groups(ax, labels, (width - 0.8) / len(labels))
        title = self.title if self.title is not None else make_title(chosen, f"by {along}")
        note = describe_mean(chosen, over, "Error bars")
        handles = series.lens_patches(lenses)
        series.label_series(ax, handles, width, title=title, x=along, y=chosen.attrs["label"], note=note)


def _draw_bars(ax: Axes, means: xr.Dataset) -> None:
    """Draw the bars of all lenses side by side."""
    lenses, groups = means["lens"].values, np.arange(means["value"].shape[1])
    width = 0.8 / len(lenses)
    shifts = series.spread_series(len(lenses), width)
    for index, style in enumerate(series.styles(lenses, "lenses")):
        bars = Estimate.from_fields(means).isel(lens=index)
        series.draw_estimates(ax, bars, groups + shifts[index], style, kind="bars", width=width)
    ax.axhline(0, color=theme.quiet, linewidth=0.6, zorder=4)
    series.style_axes(ax)


def _select_axis(chosen: xr.Dataset, along: str | None) -> str:
    """Return the requested axis; by default the variable's own, or layer."""
    axes = [*further_axes(chosen), "layer", "head"]
    if along is not None and along not in axes:
        raise unknown_name(f"axis of '{chosen.attrs['variable']}'", along, axes)
    return along if along is not None else axes[0]
