"""Raw attention, another lens and their difference, side by side."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as mpl

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.core.prose import join_words
from headscope.core.spec import check_choices
from headscope.plotting import canvas, heatmap, selection, theme


@dataclass(frozen=True)
class Compare(Figure):
    """The raw map, the same head through another lens, and their difference, all on one scale.

    The data needs the lens `raw` and another one; `lens` selects it where there are several. Without `layer`
    and `head` it shows the head that changes most. Where the maps are equal it draws one of them and says why.
    Colours follow the square root of a weight, so that small ones are visible beside large ones;
    `scale="linear"` changes that. `size` is the width in inches.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: heatmap.Spacing = "root"

    cites = ("brunner2020", "sun2021")

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw three panels, or one where the maps are equal."""
        lens = _select_lens(data, self.lens)
        layer, head = _select_head(data, lens, self.layer, self.head)
        raw, other = (selection.select_head(data, name, layer, head) for name in ("raw", lens))
        maps = [selection.visible_weights(raw), selection.visible_weights(other)]
        equal = np.allclose(maps[0], maps[1], atol=1e-6, equal_nan=True)  # float32 weights
        cell, size = heatmap.fit_heatmap(other, self.size, panels=1 if equal else 3, extra=0.55)
        figure = target.open_panels(*size)
        if equal:
            _draw_one(figure, other, maps[0], cell)
        else:
            _draw_three(figure, other, [*maps, maps[0] - maps[1]], cell, self.scale)
        automatic = None in (self.layer, self.head) and data.sizes["layer"] * data.sizes["head"] > 1
        title = self.title if self.title is not None else _title(other, equal=equal, automatic=automatic)
        width = figure.bbox.width / figure.dpi
        figure.suptitle(canvas.wrap_text(title, width, theme.TITLE) + "\n")  # a blank line above the panels' titles


def _draw_three(
    figure: mpl.Figure | mpl.SubFigure,
    other: xr.Dataset,
    maps: list[heatmap.Cells],
    cell: float,
    spacing: heatmap.Spacing,
) -> None:
    """Draw raw, other and difference on one symmetric scale."""
    lens = str(other["lens"].values)
    scale = heatmap.weight_scale(np.concatenate(maps), signed=True, spacing=spacing)
    panels = figure.subplots(1, 3)
    for panel, weights, name in zip(panels, maps, ("raw", lens, f"raw − {lens}"), strict=True):
        heatmap.draw_cells(panel, weights, scale)
        heatmap.label_axes(panel, other, cell, queries=panel is panels[0])
        panel.set_title(name)
    rows, columns = maps[0].shape
    heatmap.add_colour_bar(panels[-1], scale, "weight", (cell * columns, cell * rows))


def _draw_one(figure: mpl.Figure | mpl.SubFigure, other: xr.Dataset, weights: heatmap.Cells, cell: float) -> None:
    """Draw the raw map alone, with the reason why the other map is equal."""
    panel = figure.subplots()
    scale = heatmap.weight_scale(weights, signed=False)
    heatmap.draw_cells(panel, weights, scale)
    heatmap.label_axes(panel, other, cell)
    rows, columns = weights.shape
    heatmap.add_colour_bar(panel, scale, "attention weight", (cell * columns, cell * rows))
    canvas.add_note(panel, _why_equal(other), width=cell * columns)


def _why_equal(other: xr.Dataset) -> str:
    lens = str(other["lens"].values)
    if "null" in other and int(other["null"]) == 0:
        return (
            f"{int(other['n'])} tokens, rank {int(other['rank'])}: all of this attention reaches the output, "
            f"so {lens} attention is the same."
        )
    return f"The lens {lens} gives the same map as raw attention here."


def _title(other: xr.Dataset, *, equal: bool, automatic: bool) -> str:
    head = selection.head_label(other)
    if equal:
        return f"{head} · raw attention"
    first = f"{head}, the head that changes most" if automatic else head
    if "share" not in other or not np.isfinite(float(other["share"])):
        return first
    return (
        f"{first}\n{int(other['n'])} tokens, rank {int(other['rank'])}: {100 * float(other['share']):.0f} % of this attention "
        f"is effective (norm of the {other['lens'].values} map ÷ norm of the raw map)"
    )


def _select_lens(data: xr.Dataset, lens: str | None) -> str:
    """Return the lens to compare with raw attention."""
    selection.require_variables(data, "weights")
    names = [str(name) for name in data["lens"].values]
    others = [name for name in names if name != "raw"]
    if "raw" not in names or not others:
        raise InputError(
            f"The figure 'compare' needs the lens 'raw' and another one, but the data has {', '.join(names)}. View the "
            "same trace through both: draw([view(trace, 'raw'), view(trace, 'effective')], 'compare')."
        )
    if lens is None:
        return others[0]
    if lens == "raw":
        raise InputError(f"lens='raw' would compare raw attention with itself. Give {join_words(others, 'or')}.")
    return str(selection.select_maps(data, lens)["lens"].values)


def _select_head(data: xr.Dataset, lens: str, layer: int | None, head: int | None) -> tuple[int, int]:
    """Return the requested layer and head; by default those with the smallest effective share."""
    other, raw = selection.select_maps(data, lens), selection.select_maps(data, "raw")
    layers = [layer] if layer is not None else data["layer"].values
    heads = [head] if head is not None else data["head"].values
    for axis, label in (("layer", layer), ("head", head)):
        selection.axis_index(data, axis, label)
    if "share" in other and bool(other["share"].notnull().any()):
        share = other["share"]
    else:
        share = -abs(raw["weights"] - other["weights"]).sum(("query", "key"))
    share = share.sel(layer=layers, head=heads).fillna(np.inf)
    row, column = np.unravel_index(int(share.values.argmin()), share.shape)
    return int(share["layer"][row]), int(share["head"][column])
