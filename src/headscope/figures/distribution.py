"""How examples spread: for each layer or along another axis, and for each lens."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure
from headscope.plotting import canvas, series, theme
from headscope.results import measured

FEW = 40  # examples that are shown as dots too


@dataclass(frozen=True)
class Distribution(Figure):
    """A violin over examples for each layer and lens, with the median and the middle half.

    `along` may be head or a further axis such as type instead of layer. An example's value is its mean over the layers
    and heads that are not along it; `at` narrows them, as layer=11. It needs rows: hs.measure(…, rows=True). `size` is
    the width in inches.
    """

    variable: str | None = None
    along: str = "layer"
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
        """The spread of one variable over examples."""
        chosen = measured.part(data, self.variable, lens=self.lens, at=self.at)
        rows = _rows(chosen, self.along)
        wide = self.size if self.size is not None else _width(rows, self.along)
        place = canvas.one_panel("distribution", ax, figure, (wide, series.height(rows.to_dataset(name="x"), wide)))
        wide = wide if ax is None else canvas.inches(ax)[0]
        _draw(place, rows)
        labels = series.named(self.along, rows[self.along].values)
        series.name_groups(place, labels, (wide - 0.8) / len(labels))
        place.set_ylabel(chosen.attrs["label"])
        lines = series.legend(place, _handles(rows), wide - 0.7) if rows.sizes["lens"] > 1 else 0
        title = measured.name(chosen, "over examples")
        series.title(place, self.title if self.title is not None else title, wide - 0.7, lines)
        series.note(place, self.along, _caption(chosen, rows, self.along), wide)
        return canvas.root(place.figure)


def _rows(chosen: xr.Dataset, along: str) -> xr.DataArray:
    """lens, the axis and example; means over the other layers and heads."""
    name = chosen.attrs["variable"]
    if "rows" not in chosen:
        raise InputError(
            f"The figure 'distribution' needs the value of every example, '{name}_rows', but this data has only means. "
            "Measure again with rows=True (in the shell: --rows)."
        )
    axes = ["layer", "head", *measured.further(chosen)]
    if along not in axes:
        raise unknown_name(f"axis of '{name}'", along, axes)
    measured.closed("distribution", chosen, along)
    return chosen["rows"].mean([dim for dim in ("layer", "head") if dim != along]).transpose("lens", along, "example")


def _draw(ax: Axes, rows: xr.DataArray) -> None:
    """Violins with their quartiles; the dots of few examples lie beside each other in a fixed pattern."""
    many = rows.sizes["lens"]
    wide = 0.8 / many
    for index, style in enumerate(series.styles(rows["lens"].values, "lenses")):
        for place, values in enumerate(rows.values[index]):
            values = values[np.isfinite(values)]
            middle = place + (index - (many - 1) / 2) * wide
            if not values.size:
                ax.text(middle, 0.01, "–", transform=ax.get_xaxis_transform(), ha="center", color=theme.quiet)
                continue
            if len(values) > 2 and np.ptp(values) > 0:
                _violin(ax, values, middle, 0.9 * wide, style)
            low, median, high = np.percentile(values, [25, 50, 75])
            ax.vlines(middle, low, high, color=theme.ink, linewidth=2.2, zorder=3)
            ax.plot(middle, median, "o", color="#ffffff", markersize=2.6, markeredgecolor=theme.ink, zorder=4)
            if len(values) <= FEW:
                apart = (np.arange(len(values)) * 0.618 % 1 - 0.5) * 0.5 * wide
                ax.plot(middle + apart, values, ".", color=style.colour, markersize=2.2, alpha=0.8, zorder=2)
    series.plain(ax)


def _violin(ax: Axes, values: Any, place: float, wide: float, style: series.Style) -> None:
    with series.hatched(style.area):
        drawn: Any = ax.violinplot([values], [place], widths=wide, showextrema=False)  # "bodies" is a list of them
        for body in drawn["bodies"]:
            body.set(**style.area, linewidth=0.6, alpha=1.0, zorder=1)


def _handles(rows: xr.DataArray) -> list[Patch]:
    lenses = rows["lens"].values
    return series.patches([style.area for style in series.styles(lenses, "lenses")], lenses)


def _caption(chosen: xr.Dataset, rows: xr.DataArray, along: str) -> str:
    counts = rows.count("example")
    least, most = int(counts.min()), int(counts.max())
    many = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    over = [f"{chosen.sizes[dim]} {dim}s" for dim in ("layer", "head") if dim != along and chosen.sizes[dim] > 1]
    each = f", each its mean over {' and '.join(over)}" if over else ""
    return f"{many} examples{each}. Dot: median; bar: the middle half."


def _width(rows: xr.DataArray, along: str) -> float:
    """One column of a paper, or more where there are many violins."""
    return min(7.0, max(series.COLUMN, 0.8 + rows.sizes[along] * (0.1 + 0.2 * rows.sizes["lens"])))
