"""The tree in which heads with similar attention are joined."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.patches import Rectangle

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, fonts, head_dots, scales, selection, series, theme
from headscope.results.behaviour import describe_behaviour
from headscope.results.cluster import name_distance

STRIP = 0.045  # height of a strip of colours below the tree, as a share of the tree's height


@dataclass(frozen=True)
class Dendrogram(Figure):
    """The tree of `hs.cluster`: heads are joined at the height of the mean distance between them (average linkage).

    Below each head are the colour of its layer and, where it is known, of its behaviour. A dashed line marks where the
    tree is cut into clusters. `cmap` is a colour map of matplotlib for layers, `size` the width in inches.
    """

    lens: str | None = None
    title: str | None = None
    size: float | None = None
    cmap: scales.ColourMap = None

    cites = ("clark2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the tree of one lens."""
        if "merge" not in data or "leaf" not in data:
            raise InputError(
                f"The figure 'dendrogram' draws the result of hs.cluster, but the data has "
                f"{selection.quote_variables(data)}. Cluster first: hs.cluster(data)."
            )
        selection.require_variables(data)
        part = selection.select_lens(data, self.lens)
        tree = part["merge"].transpose("step", "part").values
        tree = tree[np.isfinite(tree).all(1)]
        width = self.size if self.size is not None else theme.PAGE[0]
        legend = _legend_looks(part, scales.find_colours(self.cmap, theme.weights))
        lines = 1.5 * theme.text_size("note") / 72 * len(legend)
        ax = target.open_axes(width, max(min(3.6, max(2.6, 0.5 * width)), 1.0 + lines))
        wide = width - 1.2 if target.is_new else canvas.axes_size(ax)[0]
        top = _draw_tree(ax, tree, int(part["clusters"]))
        heads = part["leaf"].stack(each=("layer", "head")).dropna("each")
        heads = heads.isel(each=np.argsort(heads.values))
        _draw_strips(ax, part, heads, top, scales.find_colours(self.cmap, theme.weights))
        head_dots.add_legend(ax, legend)
        series.style_axes(ax)
        _label_heads(ax, heads, wide)
        ax.set_ylabel(canvas.wrap_text(name_distance(data), 2.0, theme.text_size("label")))
        ax.spines["bottom"].set_visible(False)
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top])
        strips = 1 + ("behaviour" in part)
        ax.set_ylim(-1.2 * STRIP * strips * top, 1.04 * top)
        note = (
            f"{len(heads)} heads in {int(part['clusters'])} clusters, mean silhouette {float(part['silhouette']):.2f}."
        )
        note = f"{note} {describe_behaviour(part)}" if "behaviour" in part else note
        canvas.add_note(ax, note, width=wide, below=_label_height(heads, wide))
        title = self.title if self.title is not None else f"{part['lens'].item()} · heads with similar attention"
        canvas.set_title(ax, title, wide, loc="left")


def _draw_tree(ax: Axes, tree: Any, clusters: int) -> float:
    """Draw the branches, leaves at 0, 1, …, and the height at which the tree is cut; return the tree's height."""
    from scipy.cluster.hierarchy import dendrogram

    drawn = dendrogram(tree, no_plot=True)
    across, up = (np.array(drawn[name]) for name in ("icoord", "dcoord"))
    lines = np.stack([(across - 5) / 10, up], axis=-1)  # scipy has leaves at 5, 15, …
    ax.add_collection(LineCollection(list(lines), colors=theme.ink, linewidths=0.6))
    top, count = float(tree[:, 2].max()), len(tree) + 1
    ax.set(xlim=(-0.7, count - 0.3), ylim=(0, top))
    if 1 < clusters < count:
        height = tree[-clusters + 1, 2] / 2 + tree[-clusters, 2] / 2
        ax.axhline(height, color=theme.quiet, linewidth=0.7, linestyle=(0, (4, 2)))
    return top


def _layer_looks(part: xr.Dataset, colours: Any) -> dict[int, head_dots.Look]:
    layers = [int(layer) for layer in part["layer"].values]
    return dict(zip(layers, head_dots.layer_looks(len(layers), colours), strict=True))


def _legend_looks(part: xr.Dataset, colours: Any) -> dict[str, head_dots.Look]:
    """Return the looks of layers, of many only the first and the last, and of behaviours."""
    layers = {f"L{layer}": look for layer, look in _layer_looks(part, colours).items()}
    if len(layers) > head_dots.MAX_LEGEND:
        layers = {label: layers[label] for label in (next(iter(layers)), next(reversed(layers)))}
    names = [str(name) for name in part["behaviour"].values.ravel()] if "behaviour" in part else []
    looks = {**layers, **{fonts.to_label(name): look for name, look in head_dots.name_looks(names).items()}}
    return {label: {**look, "marker": "s"} for label, look in looks.items()}


def _draw_strips(ax: Axes, part: xr.Dataset, heads: xr.DataArray, top: float, colours: Any) -> None:
    """Draw the colour of each head's layer, and of its behaviour, below its leaf."""
    layers = _layer_looks(part, colours)
    rows = [[layers[int(layer)]["color"] for layer in heads["layer"].values]]
    if "behaviour" in part:
        names = [str(part["behaviour"].sel(layer=layer, head=head).item()) for layer, head in heads["each"].values]
        looks = head_dots.name_looks(names)
        rows.append([looks[name]["color"] for name in names])
    for row, shades in enumerate(rows):
        base = -1.2 * STRIP * (row + 1) * top
        cells = [Rectangle((leaf - 0.5, base), 1.0, STRIP * top) for leaf in range(len(shades))]
        ax.add_collection(PatchCollection(cells, facecolors=shades, edgecolors="#ffffff", linewidths=0.2))


def _label_heads(ax: Axes, heads: xr.DataArray, width: float) -> None:
    """Name the heads below the strips, if their names fit."""
    size, labels = _label_size(heads, width), _head_names(heads)
    ax.set_xticks(range(len(labels)) if size else [], labels=labels if size else [], rotation=90, fontsize=size or 5)
    ax.tick_params(axis="x", length=0, pad=2)


def _head_names(heads: xr.DataArray) -> list[str]:
    return [f"L{layer}H{head}" for layer, head in heads["each"].values]


def _label_size(heads: xr.DataArray, width: float) -> float:
    """Return the font size of the names of heads in points; 0 where they cannot be read."""
    size = min(theme.text_size("small"), 72 * width / (1.05 * (len(heads) + 1)))
    return size if size >= theme.MIN_FONT_SIZE else 0.0


def _label_height(heads: xr.DataArray, width: float) -> float:
    return fonts.label_width(_head_names(heads)) * _label_size(heads, width) + 0.05
