"""A variable from layer to layer: the mean over heads with its interval, and every head."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from headscope.core.estimate import Estimate
from headscope.core.figure import Figure, Target
from headscope.plotting import series, theme
from headscope.results.select import require_shown_axes, select_variable
from headscope.results.summarize import describe_mean, make_title, mean_over


@dataclass(frozen=True)
class Curve(Figure):
    """One line for each lens over the layers, the mean of all heads, with its 95 % interval as a band.

    Single heads are dots; `heads=False` leaves them out. `at` selects labels along further axes, as
    role=sep+source=others, or one head, as head=3. `size` is the width in inches.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    heads: bool = True
    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the lines of one variable."""
        chosen = select_variable(data, self.variable, lens=self.lens, at=self.at)
        require_shown_axes("curve", chosen)
        chosen = chosen.transpose("lens", "layer", "head", ...)
        means = mean_over(chosen, ["head"])
        ax, width = series.open_axes(target, means["lens"].values, self.size, 0.9 + 0.2 * means.sizes["layer"])
        dots = self.heads and chosen.sizes["head"] > 1
        handles = _draw_lines(ax, chosen, means, dots=dots)
        _label_layers(ax, means)
        title = self.title if self.title is not None else make_title(chosen, "by layer")
        note = ("Dots: single heads. " if dots else "") + describe_mean(chosen, ["head"], "Band")
        series.label_series(ax, handles, width, title=title, x="layer", y=chosen.attrs["label"], note=note)


def _draw_lines(ax: Axes, chosen: xr.Dataset, means: xr.Dataset, *, dots: bool) -> list[Artist]:
    """Draw dots, then bands, then lines; the dots of each lens are shifted so that they do not overlap."""
    layers, lenses = means["layer"].values.astype(float), means["lens"].values
    shifts = series.spread_series(len(lenses), min(0.22, 0.6 / len(lenses)))
    handles = []
    for index, style in enumerate(series.styles(lenses, "lenses")):
        if dots:
            small: dict[str, Any] = {"s": 5, "linewidths": 0, "alpha": 0.4, "zorder": 1}
            x = np.repeat(layers[:, None] + shifts[index], chosen.sizes["head"], axis=1)
            ax.scatter(x, chosen["value"].values[index], color=style.colour, marker=style.mark, **small)
        mean, name = Estimate.from_fields(means).isel(lens=index), str(lenses[index])
        handles.append(series.draw_estimates(ax, mean, layers, style, kind="band", size=3.2, label=name))
    return handles


def _label_layers(ax: Axes, means: xr.Dataset) -> None:
    layers = means["layer"].values
    series.style_axes(ax)
    ax.set_xlim(layers.min() - 0.6, layers.max() + 0.6)
    if len(layers) <= 12:
        ax.set_xticks(layers)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    low, high = ax.get_ylim()
    if low < 0 < high:
        ax.axhline(0, color=theme.quiet, linewidth=0.6, zorder=1)
