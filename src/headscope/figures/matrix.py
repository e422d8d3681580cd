"""One head as a heat map: queries down, keys across."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, heatmap, scales, selection, theme


@dataclass(frozen=True)
class Matrix(Figure):
    """One map with its tokens; masked cells are hatched.

    `layer`, `head` and `lens` default to the first. `size` is the width in inches; where the tokens are too many to
    label all of them, every n-th is labelled. Colors are linear up to the 99.5 % quantile of the absolute weights,
    or up to `limit`; `scale` sets linear, root or log, and `cmap` a colour map of matplotlib. `numbers` prints each
    weight, for short texts.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: scales.Spacing = "linear"
    limit: float | None = None
    cmap: scales.ColourMap = None
    numbers: bool = False

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the heat map of one head."""
        head_map = selection.select_head(data, self.lens, self.layer, self.head)
        weights, lens = selection.visible_weights(head_map), str(head_map["lens"].values)
        layout = heatmap.fit_heatmap(head_map, self.size)
        ax = target.open_axes(*layout.size)
        cell, below = layout.cell, layout.below
        if not target.is_new:
            cell, below = heatmap.cell_size(ax, weights.shape), scales.is_narrow(ax)
        signed = selection.is_signed(head_map)
        scale = scales.weight_scale(weights, signed=signed, spacing=self.scale, limit=self.limit, cmap=self.cmap)
        heatmap.draw_cells(ax, weights, scale)
        heatmap.label_axes(ax, head_map, cell)
        box = (cell * weights.shape[1], cell * weights.shape[0])
        scales.add_colour_bar(ax, scale, heatmap.weight_label(head_map), box, below=below)
        title = self.title if self.title is not None else f"{lens} · {selection.head_label(head_map)}"
        canvas.set_title(ax, title, max(box[0], 1.6))
        if self.numbers:
            _print_weights(ax, weights, scale, min(8.0, cell * 72 * 0.3))


def _print_weights(ax: Axes, weights: scales.Cells, scale: scales.ColourScale, size: float) -> None:
    """Print each weight in its cell; raise InputError where it could not be read."""
    if size < theme.MIN_FONT_SIZE:
        raise InputError(
            f"numbers=True cannot be read here: {weights.shape[0]} × {weights.shape[1]} weights need a wider figure. "
            "Give a larger size, or a shorter text."
        )
    for cell, weight in np.ndenumerate(weights):
        if np.isfinite(weight):
            ink = theme.text_colour(scale.rgba(np.array(weight)))
            heatmap.write_in_cell(ax, cell, f"{weight:.2f}", fontsize=size, color=ink)
