"""Raw attention, another lens and their difference, side by side."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as mpl
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.core.prose import join_words
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

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw three panels, or one where the maps are equal."""
        lens = _select_lens(data, self.lens)
        layer, head = _select_head(data, lens, self.layer, self.head)
        raw, lens_map = (selection.select_head(data, name, layer, head) for name in ("raw", lens))
        maps = [selection.visible_weights(raw), selection.visible_weights(lens_map)]
        equal = np.allclose(maps[0], maps[1], atol=1e-6, equal_nan=True)  # float32 weights
        cell, size = heatmap.fit_heatmap(lens_map, self.size, panels=1 if equal else 3, extra=0.55)
        figure = target.open_panels(*size)
        if equal:
            scale = heatmap.weight_scale(maps[0], signed=False)
            panel = _draw_panels(figure, lens_map, {"": maps[0]}, cell, scale)
            canvas.add_note(panel, _why_equal(lens_map), width=cell * maps[0].shape[1])
        else:
            panels = {"raw": maps[0], lens: maps[1], f"raw − {lens}": maps[0] - maps[1]}
            scale = heatmap.weight_scale(np.concatenate([*panels.values()]), signed=True, spacing=self.scale)
            _draw_panels(figure, lens_map, panels, cell, scale)
        automatic = None in (self.layer, self.head) and data.sizes["layer"] * data.sizes["head"] > 1
        title = self.title if self.title is not None else _title(lens_map, equal=equal, automatic=automatic)
        width = figure.bbox.width / figure.dpi
        figure.suptitle(canvas.wrap_text(title, width, theme.TITLE) + "\n")  # a blank line above the panels' titles


def _draw_panels(
    figure: mpl.Figure | mpl.SubFigure,
    lens_map: xr.Dataset,
    maps: dict[str, heatmap.Cells],
    cell: float,
    scale: heatmap.ColourScale,
) -> Axes:
    """Draw maps by their titles on one scale, with a colour bar beside the last panel, which is returned."""
    panels: list[Axes] = list(figure.subplots(1, len(maps), squeeze=False)[0])
    for panel, (title, weights) in zip(panels, maps.items(), strict=True):
        heatmap.draw_cells(panel, weights, scale)
        heatmap.label_axes(panel, lens_map, cell, queries=panel is panels[0])
        panel.set_title(title)
    text = "weight" if len(maps) > 1 else "attention weight"
    heatmap.add_colour_bar(panels[-1], scale, text, (cell * lens_map.sizes["key"], cell * lens_map.sizes["query"]))
    return panels[-1]


def _why_equal(lens_map: xr.Dataset) -> str:
    lens = str(lens_map["lens"].values)
    if "null" in lens_map and int(lens_map["null"]) == 0:
        return (
            f"{int(lens_map['n'])} tokens, rank {int(lens_map['rank'])}: all of this attention reaches the output, "
            f"so {lens} attention is the same."
        )
    return f"The lens {lens} gives the same map as raw attention here."


def _title(lens_map: xr.Dataset, *, equal: bool, automatic: bool) -> str:
    head = selection.head_label(lens_map)
    if equal:
        return f"{head} · raw attention"
    first = f"{head}, the head that changes most" if automatic else head
    if "share" not in lens_map or not np.isfinite(float(lens_map["share"])):
        return first
    tokens, rank, share = int(lens_map["n"]), int(lens_map["rank"]), float(lens_map["share"])
    return (
        f"{first}\n{tokens} tokens, rank {rank}: {100 * share:.0f} % of this attention is effective "
        f"(norm of the {lens_map['lens'].values} map ÷ norm of the raw map)"
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
    lens_map, raw = selection.select_maps(data, lens), selection.select_maps(data, "raw")
    given = {axis: label for axis, label in (("layer", layer), ("head", head)) if label is not None}
    chosen = {axis: [selection.axis_index(data, axis, label)] for axis, label in given.items()}
    if "share" in lens_map and bool(lens_map["share"].notnull().any()):
        share = lens_map["share"]
    else:
        share = -abs(raw["weights"] - lens_map["weights"]).sum(("query", "key"))
    share = share.isel(chosen).fillna(np.inf)
    row, column = np.unravel_index(int(share.values.argmin()), share.shape)
    return int(share["layer"][row]), int(share["head"][column])
