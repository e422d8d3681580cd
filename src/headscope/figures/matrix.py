"""One head as a heat map: queries down, keys across."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes

from headscope.core.figure import Figure
from headscope.core.spec import check_choices
from headscope.plotting import canvas, heat, pick, theme


@dataclass(frozen=True)
class Matrix(Figure):
    """One map, every token named; hatched where a query could not see a key.

    Without `layer`, `head` or `lens` it shows the first. `size` is the width in inches; by default the figure
    grows with the text, so that labels stay readable. `scale="root"` shows small weights beside large ones;
    `numbers` prints each weight, for short texts.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: heat.Spacing = "linear"
    numbers: bool = False

    def __post_init__(self) -> None:
        check_choices(self)

    @theme.applied()
    def __call__(
        self,
        data: xr.Dataset,
        *,
        ax: Axes | None = None,
        figure: canvases.Figure | canvases.SubFigure | None = None,
    ) -> canvases.Figure:
        """The heat map of one head."""
        one = pick.one_head(data, self.lens, self.layer, self.head)
        weights, lens = pick.cells(one), str(one["lens"].values)
        room = heat.room(one, self.size)
        place = canvas.one_panel("matrix", ax, figure, room.size)
        cell = room.cell if ax is None else heat.cell_in(ax, weights.shape)
        scale = heat.scale(weights, signed=pick.is_signed(one), spacing=self.scale)
        heat.draw_cells(place, weights, scale)
        heat.name_sides(place, one, cell)
        heat.bar(place, scale, heat.quantity(lens), (cell * weights.shape[1], cell * weights.shape[0]))
        place.set_title(self.title if self.title is not None else f"{lens} · {pick.label(one)}")
        if self.numbers:
            _print(place, weights, scale, min(8.0, cell * 72 * 0.3))
        return canvas.root(place.figure)


def _print(ax: Axes, weights: heat.Cells, scale: heat.Scale, size: float) -> None:
    """Each weight in its cell, in ink that can be read on its colour."""
    for (row, column), weight in np.ndenumerate(weights):
        if np.isfinite(weight):
            ink = theme.ink_on(scale.paint(np.array(weight)))
            ax.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=size, color=ink)
