"""Maps that a classifier is surest of, for each class."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure
from headscope.patterns.classes import NAMES
from headscope.plotting import canvas, fonts, heat, pick, theme

PANEL = 1.35  # inches, by default


@dataclass(frozen=True)
class TypicalMaps(Figure):
    """A column of maps for each class, the surest first, each on its own scale: darker is more of its row's weight.

    It draws what `headscope patterns typical` gives. Colours follow the square root of a weight. `rows` is how many
    maps of a class are shown, `size` the width in inches.
    """

    rows: int | None = None
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
        """One panel for each map."""
        pick.need(data, "weights", "label")
        if self.rows is not None and self.rows < 1:
            raise InputError(f"The parameter 'rows' of 'typical_maps' must be at least 1, but got {self.rows}.")
        classes = list(dict.fromkeys(str(each) for each in data["label"].values))
        places = {each: np.flatnonzero(data["label"].values == each)[: self.rows] for each in classes}
        many = max(map(len, places.values()))
        panel = PANEL if self.size is None else self.size / len(classes) - 0.12
        size = (len(classes) * (panel + 0.12), many * (panel + 0.42) + 0.6)
        place = canvas.whole_figure("typical_maps", ax, figure, size)
        panels = place.subplots(many, len(classes), squeeze=False)
        for column, name in enumerate(classes):
            panels[0, column].set_title(fonts.shown(NAMES.get(name, name)), fontsize=theme.LABEL)
            for row, cell in enumerate(panels[:, column]):
                _draw(cell, data.isel(map=places[name][row]) if row < len(places[name]) else None)
        place.suptitle(self.title if self.title is not None else "Maps of each class, the surest first")
        note = "Rows are queries, columns are keys; darker is more of a row's weight, on a scale of each map's own."
        place.supxlabel(canvas.wrapped(note, size[0], theme.NOTE), fontsize=theme.NOTE, color=theme.quiet)
        return canvas.root(place)


def _draw(ax: Axes, one: xr.Dataset | None) -> None:
    """One map, its padding cut away, with where it is from and how sure the cnn is below."""
    if one is None:
        ax.set_axis_off()
        return
    weights = np.abs(one["weights"].transpose("query", "key").values.astype(float))
    there = np.isfinite(weights)
    weights = weights[there.any(1)][:, there.any(0)]
    whole = weights.sum(-1, keepdims=True)
    shares = np.divide(weights, whole, out=np.zeros_like(weights), where=whole > 0)
    scale = heat.scale(shares, signed=False, spacing="root")
    ax.imshow(shares, norm=scale.norm, cmap=scale.colours, aspect="equal", interpolation="antialiased")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=theme.hatch, linewidth=0.4)
    told = [fonts.shown(each) for each in str(one["source"].values).split(", ")] if "source" in one else []
    if "confidence" in one:
        sure = float(one["confidence"])
        told.append("sure by > 0.99" if sure > 0.99 else f"sure by {sure:.2f}")
    lines = told if len(told) < 3 else [told[0], ", ".join(told[1:-1]), told[-1]]
    ax.set_xlabel("\n".join(lines), fontsize=theme.NOTE - 2, color=theme.quiet, labelpad=2, linespacing=1.05)
