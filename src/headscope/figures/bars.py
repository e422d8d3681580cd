"""Means as bars with their intervals, along one axis, beside each other for each lens."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from headscope.core.errors import unknown_name
from headscope.core.figure import Figure
from headscope.plotting import canvas, series, theme
from headscope.results import measured


@dataclass(frozen=True)
class Bars(Figure):
    """A bar for each label along one axis, such as type, role, offset, layer or head, and for each lens.

    `along` is the variable's own axis by default, or else layer. A bar is the mean over the layers and heads that are
    not along it; `at` narrows them, as layer=11+role=sep. Whiskers are 95 % intervals over examples. `size` is the
    width in inches.
    """

    variable: str | None = None
    along: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
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
        """The bars of one variable."""
        chosen = measured.part(data, self.variable, lens=self.lens, at=self.at)
        along = _along(chosen, self.along)
        measured.closed("bars", chosen, along)
        over = [dim for dim in ("layer", "head") if dim != along]
        means = measured.mean_over(chosen, over).transpose("lens", along, ...)
        wide = self.size if self.size is not None else _width(means, along)
        place = canvas.one_panel("bars", ax, figure, (wide, series.height(means, wide)))
        wide = wide if ax is None else canvas.inches(ax)[0]
        labels = series.named(along, means[along].values)
        _draw(place, means)
        series.name_groups(place, labels, (wide - 0.8) / len(labels))
        place.set_ylabel(chosen.attrs["label"])
        lines = series.legend(place, _handles(means), wide - 0.7) if means.sizes["lens"] > 1 else 0
        title = measured.name(chosen, f"by {along}")
        series.title(place, self.title if self.title is not None else title, wide - 0.7, lines)
        series.note(place, along, measured.averaged(chosen, over, "Whiskers"), wide)
        return canvas.root(place.figure)


def _draw(ax: Axes, means: xr.Dataset) -> None:
    """Bars of all lenses, and a dash where there is no value."""
    many = means.sizes["lens"]
    wide = 0.8 / many
    for index, style in enumerate(series.styles(means["lens"].values, "lenses")):
        value = means["value"].values[index]
        places = np.arange(len(value)) + (index - (many - 1) / 2) * wide
        with series.hatched(style.area):
            ax.bar(places, value, width=0.92 * wide, linewidth=0.7, zorder=2, **style.area)
        if "low" in means:
            ends = [value - means["low"].values[index], means["high"].values[index] - value]
            ax.errorbar(places, value, yerr=np.nan_to_num(ends), fmt="none", ecolor=theme.ink, elinewidth=0.8, zorder=3)
        for place in places[np.isnan(value)]:
            ax.text(place, 0, "–", ha="center", va="bottom", fontsize=theme.NOTE, color=theme.quiet)
    ax.axhline(0, color=theme.quiet, linewidth=0.6, zorder=4)
    series.plain(ax)


def _handles(means: xr.Dataset) -> list[Patch]:
    lenses = means["lens"].values
    return series.patches([style.area for style in series.styles(lenses, "lenses")], lenses)


def _along(chosen: xr.Dataset, along: str | None) -> str:
    """The axis asked for; or the variable's own, or layer."""
    axes = [*measured.further(chosen), "layer", "head"]
    if along is not None and along not in axes:
        raise unknown_name(f"axis of '{chosen.attrs['variable']}'", along, axes)
    return along if along is not None else axes[0]


def _width(means: xr.Dataset, along: str) -> float:
    """One column of a paper, or more where there are many bars."""
    return min(7.0, max(series.COLUMN, 0.8 + means.sizes[along] * (0.1 + 0.13 * means.sizes["lens"])))
