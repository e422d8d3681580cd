"""The distribution over examples, for each layer or along another axis, and for each lens."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure, Target
from headscope.core.prose import join_words
from headscope.plotting import series, theme
from headscope.results.select import further_axes, require_shown_axes, select_variable
from headscope.results.summarize import format_count, make_title

MAX_DOTS = 40  # examples that are also drawn as dots


@dataclass(frozen=True)
class Distribution(Figure):
    """A violin over examples for each layer and lens, with median and quartiles.

    `along` may be head or a further axis such as type instead of layer. The value of an example is its mean over the
    layers and heads that are not along it; `at` selects some of them, as layer=11. It needs the values of single
    examples: hs.measure(…, rows=True). `size` is the width in inches.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    along: str = "layer"
    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the violins of one variable."""
        chosen = select_variable(data, self.variable, lens=self.lens, at=self.at)
        rows = _average_heads(chosen, self.along)
        lenses, labels = rows["lens"].values, series.axis_labels(self.along, rows[self.along].values)
        ax, width = series.open_axes(target, lenses, self.size, 0.8 + len(labels) * (0.1 + 0.2 * len(lenses)))
        _draw_violins(ax, rows)
        series.label_groups(ax, labels, (width - 0.8) / len(labels))
        title = self.title if self.title is not None else make_title(chosen, "over examples")
        note, handles = _caption(chosen, rows, self.along), series.lens_patches(lenses)
        series.label_series(ax, handles, width, title=title, x=self.along, y=chosen.attrs["label"], note=note)


def _average_heads(chosen: xr.Dataset, along: str) -> xr.DataArray:
    """Return the values of examples along lens and one axis, averaged over other layers and heads."""
    name = chosen.attrs["variable"]
    if "rows" not in chosen:
        raise InputError(
            f"The figure 'distribution' needs the value of every example, '{name}_rows', but this data has only means. "
            "Measure again with rows=True (in the shell: --rows)."
        )
    axes = ["layer", "head", *further_axes(chosen)]
    if along not in axes:
        raise unknown_name(f"axis of '{name}'", along, axes)
    require_shown_axes("distribution", chosen, along)
    return chosen["rows"].mean([dim for dim in ("layer", "head") if dim != along]).transpose("lens", along, "example")


def _draw_violins(ax: Axes, rows: xr.DataArray) -> None:
    """Draw violins with quartiles, and dots of few examples, spread sideways in a fixed pattern."""
    lenses = rows["lens"].values
    width = 0.8 / len(lenses)
    for index, style in enumerate(series.styles(lenses, "lenses")):
        for group, values in enumerate(rows.values[index]):
            values = values[np.isfinite(values)]
            x = group + (index - (len(lenses) - 1) / 2) * width
            if not values.size:
                ax.text(x, 0.01, "–", transform=ax.get_xaxis_transform(), ha="center", color=theme.quiet)
                continue
            if len(values) > 2 and np.ptp(values) > 0:
                _draw_violin(ax, values, x, 0.9 * width, style)
            low, median, high = np.percentile(values, [25, 50, 75])
            ax.vlines(x, low, high, color=theme.ink, linewidth=2.2, zorder=3)
            ax.plot(x, median, "o", color="#ffffff", markersize=2.6, markeredgecolor=theme.ink, zorder=4)
            if len(values) <= MAX_DOTS:
                shift = (np.arange(len(values)) * 0.618 % 1 - 0.5) * 0.5 * width
                ax.plot(x + shift, values, ".", color=style.colour, markersize=2.2, alpha=0.8, zorder=2)
    series.style_axes(ax)


def _draw_violin(ax: Axes, values: Any, x: float, width: float, style: series.SeriesStyle) -> None:
    with series.use_hatch_colour(style.area):
        violin: Any = ax.violinplot([values], [x], widths=width, showextrema=False)  # matplotlib types it loosely
        for body in violin["bodies"]:
            body.set(**style.area, linewidth=0.6, alpha=1.0, zorder=1)


def _caption(chosen: xr.Dataset, rows: xr.DataArray, along: str) -> str:
    count = format_count(rows.count("example").to_dataset(name="n")).removeprefix("n = ")
    over = [f"{chosen.sizes[dim]} {dim}s" for dim in ("layer", "head") if dim != along and chosen.sizes[dim] > 1]
    mean = f", each its mean over {join_words(over)}" if over else ""
    return f"{count} examples{mean}. Dot: median; bar: the middle half."
