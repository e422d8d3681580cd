"""A quantity from layer to layer: every head thin, their mean with its interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from headscope.core.figure import Figure
from headscope.plotting import canvas, series, theme
from headscope.results import measured


@dataclass(frozen=True)
class Curve(Figure):
    """One line for each lens over the layers, the mean of all heads, with its 95 % interval as a band.

    Single heads are dots behind it; `heads=False` leaves them out. `at` chooses places along further axes, as
    role=sep+source=others, or one head, as head=3. `size` is the width in inches.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    heads: bool = True
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
        """The lines of one variable."""
        chosen = measured.part(data, self.variable, lens=self.lens, at=self.at)
        measured.closed("curve", chosen)
        chosen = chosen.transpose("lens", "layer", "head", ...)
        means = measured.mean_over(chosen, ["head"])
        wide = self.size if self.size is not None else min(7.0, max(series.COLUMN, 0.9 + 0.2 * means.sizes["layer"]))
        place = canvas.one_panel("curve", ax, figure, (wide, series.height(means, wide)))
        wide = wide if ax is None else canvas.inches(ax)[0]
        handles = _draw(place, chosen, means, dots=self.heads and chosen.sizes["head"] > 1)
        _name_layers(place, means)
        place.set_ylabel(chosen.attrs["label"])
        lines = series.legend(place, handles, wide - 0.7) if len(handles) > 1 else 0
        title = self.title if self.title is not None else measured.name(chosen, "by layer")
        series.title(place, title, wide - 0.7, lines)
        dots = "Dots: single heads. " if self.heads and chosen.sizes["head"] > 1 else ""
        series.note(place, "layer", dots + measured.averaged(chosen, ["head"], "Band"), wide)
        return canvas.root(place.figure)


def _draw(ax: Axes, chosen: xr.Dataset, means: xr.Dataset, *, dots: bool) -> list[Line2D]:
    """Dots first, then bands, then lines; lenses stand a little apart so that their dots do."""
    layers = means["layer"].values.astype(float)
    styles = series.styles(means["lens"].values, "lenses")
    shift = (np.arange(len(styles)) - (len(styles) - 1) / 2) * min(0.22, 0.6 / len(styles))
    handles = []
    for index, (style, lens) in enumerate(zip(styles, means["lens"].values, strict=True)):
        mean = means["value"].values[index]
        if dots:
            small: dict[str, Any] = {"s": 5, "linewidths": 0, "alpha": 0.4, "zorder": 1}
            places = np.repeat(layers[:, None] + shift[index], chosen.sizes["head"], axis=1)
            ax.scatter(places, chosen["value"].values[index], color=style.colour, marker=style.mark, **small)
        if "low" in means:
            ends = means["low"].values[index], means["high"].values[index]
            ax.fill_between(layers, *ends, color=style.colour, alpha=0.22, linewidth=0, zorder=2)
            if len(layers) == 1:
                ax.vlines(layers, *ends, color=style.colour, linewidth=3, alpha=0.4, zorder=2)
        look: dict[str, Any] = {"color": style.colour, "linestyle": style.line, "marker": style.mark, "markersize": 3.2}
        ax.plot(layers, mean, linewidth=1.3, zorder=3, **look)
        handles.append(Line2D([], [], linewidth=1.3, label=str(lens), **look))
    return handles


def _name_layers(ax: Axes, means: xr.Dataset) -> None:
    layers = means["layer"].values
    series.plain(ax)
    ax.set_xlim(layers.min() - 0.6, layers.max() + 0.6)
    if len(layers) <= 12:
        ax.set_xticks(layers)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    low, high = ax.get_ylim()
    if low < 0 < high:
        ax.axhline(0, color=theme.quiet, linewidth=0.6, zorder=1)
