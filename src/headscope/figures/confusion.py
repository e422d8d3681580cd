"""What a classifier of patterns takes for what."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure
from headscope.patterns.classes import NAMES
from headscope.plotting import canvas, fonts, heat, pick, theme

CELL = 0.62  # inches, by default


@dataclass(frozen=True)
class Confusion(Figure):
    """How often each label met each prediction: counts, and the share of the label's maps, which is also the colour.

    It draws what `headscope patterns evaluate` gives. `classifier` is cnn, rules, both, nearest or majority; `subset`
    is all, random, raw, effective or another of the data's. `size` is the width in inches.
    """

    classifier: str = "cnn"
    subset: str = "all"
    title: str | None = None
    size: float | None = None

    cites = ("kovaleva2019",)

    @theme.applied()
    def __call__(
        self,
        data: xr.Dataset,
        *,
        ax: Axes | None = None,
        figure: canvases.Figure | canvases.SubFigure | None = None,
    ) -> canvases.Figure:
        """The table of labels and predictions."""
        one = _chosen(data, self.classifier, self.subset)
        table = one["confusion"].transpose("pattern", "predicted").values.astype(float)
        rows, columns = ([_shown(each) for each in one[side].values] for side in ("pattern", "predicted"))
        beside = 1.6 + fonts.width(rows) * theme.NOTE
        cell = CELL if self.size is None else (self.size - beside) / len(columns)
        if cell <= 0.1:
            raise InputError(f"A figure {self.size} inches wide has no room beside its labels. Give a larger size.")
        below = 0.75 + 0.75 * fonts.width(columns) * theme.NOTE
        size = (beside + cell * len(columns), len(rows) * cell + below)
        place = canvas.one_panel("confusion", ax, figure, size)
        cell = cell if ax is None else heat.cell_in(ax, table.shape)
        scale = _draw(place, table, cell)
        place.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor")
        place.set_yticks(range(len(rows)), rows)
        place.tick_params(length=0, labelsize=theme.NOTE)
        place.set(xlabel=f"said by {self.classifier}", ylabel="label")
        heat.bar(place, scale, "share of the label's maps", (cell * len(columns), cell * len(rows)))
        place.set_title(
            self.title if self.title is not None else _title(one, self.classifier, self.subset, int(table.sum()))
        )
        return canvas.root(place.figure)


def _draw(ax: Axes, table: heat.Cells, cell: float) -> heat.Scale:
    """Cells by their share of the row, with count and per cent; a row without maps is hatched."""
    with np.errstate(invalid="ignore"):
        share = table / table.sum(-1, keepdims=True)
    scale = heat.Scale(Normalize(0, 1), theme.weights)
    heat.hide(ax, share)
    ax.imshow(share, norm=scale.norm, cmap=scale.colours, aspect="equal", interpolation="nearest")
    size = min(theme.NOTE, cell * 72 * 0.2)
    for (row, column), part in np.ndenumerate(share):
        if np.isfinite(part) and table[row, column] and size >= 3:
            per_cent = f"{100 * part:.0f} %" if part >= 0.005 else "< 1 %"
            text, ink = f"{table[row, column]:.0f}\n{per_cent}", theme.ink_on(scale.paint(np.array(part)))
            ax.text(column, row, text, ha="center", va="center", fontsize=size, color=ink, linespacing=1.1)
    ax.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)
    return scale


def _chosen(data: xr.Dataset, classifier: str, subset: str) -> xr.Dataset:
    """One classifier's table; predictions that it never gives, such as unsure, are left out."""
    pick.need(data, "confusion")
    for axis, wanted in (("classifier", classifier), ("subset", subset)):
        known = [str(each) for each in data[axis].values]
        if wanted not in known:
            raise unknown_name(f"{axis} in this data", wanted, known)
    one = data.sel(classifier=classifier, subset=subset)
    given = np.isin(one["predicted"].values, one["pattern"].values) | (one["confusion"].sum("pattern") > 0).values
    return one.isel(predicted=given)


def _title(one: xr.Dataset, classifier: str, subset: str, many: int) -> str:
    """What is drawn, with its macro-F1 where the data has it."""
    maps = f"{many:,} maps" if subset == "all" else f"{many:,} maps, {subset.replace('_', ' ')}"
    if "macro_f1" not in one:
        return f"{classifier} · {maps}"
    value, low, high = (float(one[f"macro_f1{ending}"]) for ending in ("", "_low", "_high"))
    return f"{classifier} · {maps}\nmacro-F1 {value:.2f} ({low:.2f} to {high:.2f})"


def _shown(label: object) -> str:
    return fonts.shown(NAMES.get(str(label), str(label)))
