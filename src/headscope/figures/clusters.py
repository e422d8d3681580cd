"""Heads on a plane: near each other where their attention is alike."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, head_dots, scales, selection, theme
from headscope.results.behaviour import describe_behaviour
from headscope.results.cluster import name_distance


@dataclass(frozen=True)
class Clusters(Figure):
    """Positions of heads from `hs.cluster`, coloured by layer, behaviour or cluster.

    The axes have no meaning of their own: distances between dots are like the distances between heads, as far as the
    stress says. The `labels` outermost heads are labelled. `cmap` is a colour map of matplotlib for layers, `size` the
    width in inches.
    """

    colour: Literal["layer", "behaviour", "cluster"] = "layer"
    lens: str | None = None
    labels: int = 5
    title: str | None = None
    size: float | None = None
    cmap: scales.ColourMap = None

    cites = ("clark2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a dot for each head."""
        if "position" not in data:
            raise InputError(
                f"The figure 'clusters' draws the result of hs.cluster, but the data has "
                f"{selection.quote_variables(data)}. Cluster first: hs.cluster(data)."
            )
        selection.require_variables(data, "stress", *([] if self.colour == "layer" else [self.colour]))
        part = selection.select_lens(data, self.lens)
        position = part["position"].transpose("layer", "head", "coordinate")
        table = xr.Dataset({name: position.sel(coordinate=name, drop=True) for name in ("x", "y")})
        width = self.size if self.size is not None else 3.9
        ax = target.open_axes(width, min(4.0, max(2.6, width * 0.82)))
        box = (width - 1.15, 2.6) if target.is_new else canvas.axes_size(ax)
        if self.colour == "layer":
            head_dots.draw_by_layer(ax, table, scales.find_colours(self.cmap, theme.weights))
        else:
            head_dots.draw_by_name(ax, table, part[self.colour])
        x, y = (table[name].values.ravel() for name in ("x", "y"))
        merged = not np.isfinite(table["x"].values[:, 1:]).any()
        filled = _set_limits(ax, x, y, box)
        head_dots.label_farthest(ax, table, np.hypot(x, y), self.labels, box, filled=filled, merged=merged)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(color=theme.faint)
        heads = int(np.isfinite(table["x"]).sum())
        note = f"{heads} heads, stress {float(part['stress']):.2f}. {_describe_test(part, name_distance(data))}"
        if self.colour == "behaviour":
            note = f"{note} {describe_behaviour(part)}"
        canvas.add_note(ax, note, width=box[0] + 0.5)
        title = self.title if self.title is not None else f"{part['lens'].item()} · heads by {self.colour}"
        canvas.set_title(ax, title, box[0] + 0.3, loc="left")


def _set_limits(ax: Axes, x: scales.Cells, y: scales.Cells, box: tuple[float, float]) -> tuple[float, float]:
    """Give both axes the same scale, with a margin for labels; return the share of each that the dots fill."""
    label = head_dots.label_size()
    ends = [(float(np.nanmin(values)), float(np.nanmax(values))) for values in (x, y)]
    inner = [max(0.3 * side, side - 2 * margin - 0.1) for side, margin in zip(box, label, strict=True)]
    scale = max((high - low) / side for (low, high), side in zip(ends, inner, strict=True)) or 1.0  # data per inch
    limits = [
        ((low + high - scale * side) / 2, (low + high + scale * side) / 2)
        for (low, high), side in zip(ends, box, strict=True)
    ]
    ax.set(xlim=limits[0], ylim=limits[1])
    ax.set_aspect("equal", adjustable="box", anchor="NW")
    shares = [max((high - low) / (scale * side), 0.1) for (low, high), side in zip(ends, box, strict=True)]
    return shares[0], shares[1]


def _describe_test(part: xr.Dataset, distance: str) -> str:
    """Return the mean distances within and between layers with the p-value, in words."""
    within, between, p = (float(part[name]) for name in ("within", "between", "p"))
    if not np.isfinite(p):
        return ""
    name = f"{distance[0].upper()}{distance[1:]}"
    return f"{name}: mean within layers {within:.3g}, between {between:.3g} (p = {p:.2g})."
