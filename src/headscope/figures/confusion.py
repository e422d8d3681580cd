"""The confusion matrix of a pattern classifier."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from headscope.core.errors import unknown_name
from headscope.core.figure import Figure, Target
from headscope.patterns import NAMES
from headscope.plotting import fonts, heatmap, selection, theme

CELL = 0.62  # inches, by default


@dataclass(frozen=True)
class Confusion(Figure):
    """The number of maps for each label and prediction, coloured by their share of the label's maps.

    It draws the result of `headscope patterns evaluate`. `classifier` is cnn, rules, both, nearest or majority;
    `subset` is all, random, raw, effective or another subset of the data. `size` is the width in inches.
    """

    classifier: str = "cnn"
    subset: str = "all"
    title: str | None = None
    size: float | None = None

    cites = ("kovaleva2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the matrix of labels and predictions."""
        chosen = _select(data, self.classifier, self.subset)
        table = chosen["confusion"].transpose("pattern", "predicted").values.astype(float)
        rows, columns = (
            [fonts.to_label(NAMES.get(str(name), str(name))) for name in chosen[side].values]
            for side in ("pattern", "predicted")
        )
        margin = 1.6 + fonts.label_width(rows) * theme.NOTE
        cell = CELL if self.size is None else (self.size - margin) / len(columns)
        if cell <= 0.1:
            raise heatmap.too_narrow(self.size)
        below = 0.75 + 0.75 * fonts.label_width(columns) * theme.NOTE
        ax = target.open_axes(margin + cell * len(columns), len(rows) * cell + below)
        cell = cell if target.is_new else heatmap.cell_size(ax, table.shape)
        scale = _draw_cells(ax, table, cell)
        ax.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(len(rows)), rows)
        ax.tick_params(length=0, labelsize=theme.NOTE)
        ax.set(xlabel=f"predicted by {self.classifier}", ylabel="label")
        heatmap.add_colour_bar(ax, scale, "share of the label's maps", (cell * len(columns), cell * len(rows)))
        ax.set_title(self.title if self.title is not None else _title(chosen, int(table.sum())))


def _draw_cells(ax: Axes, table: heatmap.Cells, cell: float) -> heatmap.ColourScale:
    """Colour cells by their share of the row, with count and per cent; rows without maps are hatched."""
    with np.errstate(invalid="ignore"):
        share = table / table.sum(-1, keepdims=True)
    scale = heatmap.ColourScale(Normalize(0, 1), theme.weights)
    heatmap.draw_image(ax, share, scale)
    size = min(theme.NOTE, cell * 72 * 0.2)
    for (row, column), part in np.ndenumerate(share):
        if np.isfinite(part) and table[row, column] and size >= 3:
            per_cent = f"{100 * part:.0f} %" if part >= 0.005 else "< 1 %"
            text, ink = f"{table[row, column]:.0f}\n{per_cent}", theme.text_colour(scale.rgba(np.array(part)))
            ax.text(column, row, text, ha="center", va="center", fontsize=size, color=ink, linespacing=1.1)
    ax.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)
    return scale


def _select(data: xr.Dataset, classifier: str, subset: str) -> xr.Dataset:
    """Select one classifier and subset; drop extra predictions, such as unsure, that it never makes."""
    selection.require_variables(data, "confusion")
    for axis, label in (("classifier", classifier), ("subset", subset)):
        known = [str(name) for name in data[axis].values]
        if label not in known:
            raise unknown_name(f"{axis} in this data", label, known)
    chosen = data.sel(classifier=classifier, subset=subset)
    predicted = np.isin(chosen["predicted"].values, chosen["pattern"].values)
    return chosen.isel(predicted=predicted | (chosen["confusion"].sum("pattern") > 0).values)


def _title(chosen: xr.Dataset, count: int) -> str:
    """Return classifier, number of maps and subset, with the macro-F1 where the data has it."""
    classifier, subset = str(chosen["classifier"].values), str(chosen["subset"].values)
    maps = f"{count:,} maps" if subset == "all" else f"{count:,} maps, {subset.replace('_', ' ')}"
    if "macro_f1" not in chosen:
        return f"{classifier} · {maps}"
    value, low, high = (float(chosen[f"macro_f1{ending}"]) for ending in ("", "_low", "_high"))
    return f"{classifier} · {maps}\nmacro-F1 {value:.2f} ({low:.2f} to {high:.2f})"
