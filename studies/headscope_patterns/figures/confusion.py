"""The confusion matrix of a pattern classifier."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from headscope.core.errors import unknown_name
from headscope.core.estimate import estimate
from headscope.core.figure import Figure, Target
from headscope.patterns import NAMES
from headscope.plotting import canvas, fonts, heatmap, scales, selection, theme

CELL = 0.62  # inches, by default


@dataclass(frozen=True)
class Confusion(Figure):
    """The number of maps for each label and prediction, coloured by their share of the label's maps.

    It draws the result of `headscope patterns evaluate`. `classifier` is cnn, rules, both, nearest or majority;
    `subset` is all, random, raw, effective or another subset of the data. `cmap` is a colour map of matplotlib, `size`
    the width in inches.
    """

    classifier: str = "cnn"
    subset: str = "all"
    title: str | None = None
    size: float | None = None
    cmap: scales.ColourMap = None

    cites = ("kovaleva2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the matrix of labels and predictions."""
        chosen = _select(data, self.classifier, self.subset)
        table = chosen["confusion"].transpose("pattern", "predicted").values.astype(float)
        rows, columns = (
            [fonts.to_label(NAMES.get(str(name), str(name))) for name in chosen[side].values]
            for side in ("pattern", "predicted")
        )
        narrow = self.size is not None and self.size < theme.NARROW
        note = theme.text_size("note")
        if narrow:
            note = max(theme.MIN_FONT_SIZE, min(note, 0.3 * (self.size or 0) / fonts.label_width(rows)))
        cell, size = _fit_cells(rows, columns, self.size, note)
        ax = target.open_axes(*size)
        cell = cell if target.is_new else heatmap.cell_size(ax, table.shape)
        scale = scales.ColourScale(Normalize(0, 1), scales.find_colours(self.cmap, theme.weights))
        printed = _draw_cells(ax, table, cell, scale)
        box = (cell * len(columns), cell * len(rows))
        text = "share of the label's maps"
        slanted = max(map(fonts.text_width, columns)) * note > 0.9 * cell
        turn: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
        ax.set_xticks(range(len(columns)), columns, fontsize=note, **turn)
        ax.set_yticks(range(len(rows)), rows, fontsize=note)
        ax.tick_params(length=0)
        only = narrow and printed  # the numbers say what the colours say
        below = f"predicted by {self.classifier}" + (f"\ncolour and %: {text}" if only else "")
        ax.set_xlabel(canvas.wrap_text(below, max(1.2, box[0]), note), fontsize=note)
        ax.set_ylabel("label", fontsize=note)
        if not only:
            scales.add_colour_bar(ax, scale, text, box)
        canvas.set_title(ax, self.title if self.title is not None else _title(chosen, int(table.sum())), box[0] + 0.2)


def _fit_cells(
    rows: list[str], columns: list[str], width: float | None, note: float
) -> tuple[float, tuple[float, float]]:
    """Return the side of a cell and the size of the figure, in inches, with labels of `note` points."""
    narrow = width is not None and width < theme.NARROW
    beside = 0.35 + fonts.label_width(rows) * note + (0.1 if narrow else 0.9)
    around = 1.0 + 0.65 * fonts.label_width(columns) * note
    cell = CELL if width is None else (width - beside) / len(columns)
    limits = (theme.PAGE[0] if width is None else width, theme.PAGE[1])
    cell = min(cell, (limits[0] - beside) / len(columns), (limits[1] - around) / len(rows))
    if cell * len(columns) < heatmap.SMALLEST_PANEL:
        raise heatmap.too_narrow(limits[0])
    return cell, (beside + cell * len(columns) if width is None else width, len(rows) * cell + around)


def _draw_cells(ax: Axes, table: scales.Cells, cell: float, scale: scales.ColourScale) -> bool:
    """Colour cells by their share of the row; rows without maps are hatched. Print count and per cent if they fit."""
    with np.errstate(invalid="ignore"):
        share = table / table.sum(-1, keepdims=True)
    heatmap.draw_image(ax, share, scale)
    size = min(theme.text_size("note"), cell * 72 * 0.22)
    for place, part in np.ndenumerate(share):
        if np.isfinite(part) and table[place] and size >= theme.MIN_FONT_SIZE:
            per_cent = f"{100 * part:.0f} %" if part >= 0.005 else "< 1 %"
            text, ink = f"{table[place]:.0f}\n{per_cent}", theme.text_colour(scale.rgba(np.array(part)))
            heatmap.write_in_cell(ax, place, text, fontsize=size, color=ink, linespacing=1.1)
    ax.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)
    return bool(size >= theme.MIN_FONT_SIZE)


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
    return f"{classifier} · {maps}\nmacro-F1 {estimate(chosen, 'macro_f1').format('.2f')}"
