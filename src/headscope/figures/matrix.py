"""One head as a heat map: queries down, keys across."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.figure import Figure, Target
from headscope.plotting import heatmap, selection, theme


@dataclass(frozen=True)
class Matrix(Figure):
    """One map with every token labelled; masked cells are hatched.

    `layer`, `head` and `lens` default to the first. `size` is the width in inches; by default the figure
    grows with the text, so that labels stay readable. `scale="root"` shows small weights beside large ones;
    `numbers` prints each weight, for short texts.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: heatmap.Spacing = "linear"
    numbers: bool = False

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the heat map of one head."""
        head_map = selection.select_head(data, self.lens, self.layer, self.head)
        weights, lens = selection.visible_weights(head_map), str(head_map["lens"].values)
        cell, size = heatmap.fit_heatmap(head_map, self.size)
        ax = target.open_axes(*size)
        cell = cell if target.is_new else heatmap.cell_size(ax, weights.shape)
        scale = heatmap.weight_scale(weights, signed=selection.is_signed(head_map), spacing=self.scale)
        heatmap.draw_cells(ax, weights, scale)
        heatmap.label_axes(ax, head_map, cell)
        box = (cell * weights.shape[1], cell * weights.shape[0])
        heatmap.add_colour_bar(ax, scale, heatmap.weight_label(head_map), box)
        ax.set_title(self.title if self.title is not None else f"{lens} · {selection.head_label(head_map)}")
        if self.numbers:
            _print_weights(ax, weights, scale, min(8.0, cell * 72 * 0.3))


def _print_weights(ax: Axes, weights: heatmap.Cells, scale: heatmap.ColourScale, size: float) -> None:
    """Print each weight in its cell."""
    for (row, column), weight in np.ndenumerate(weights):
        if np.isfinite(weight):
            ink = theme.text_colour(scale.rgba(np.array(weight)))
            ax.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=size, color=ink)
