"""Standard attention, what reaches the output, and what does not, side by side."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure
from headscope.core.spec import check_choices
from headscope.plotting import canvas, heat, pick, theme


@dataclass(frozen=True)
class Compare(Figure):
    """The standard map, the same head through another lens, and their difference, all on one scale.

    The data needs the lens `raw` and another one; `lens` says which, where there are several. Without `layer`
    and `head` it shows the head that changes most. Where nothing changes it draws one map and says why.
    Colours follow the square root of a weight, so that small ones can be seen beside large ones;
    `scale="linear"` changes that. `size` is the width in inches.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: heat.Spacing = "root"

    cites = ("brunner2020", "sun2021")

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
        """Three panels, or one where they would be the same."""
        lens = _other(data, self.lens)
        layer, head = _changed_most(data, lens, self.layer, self.head)
        standard, other = (pick.one_head(data, name, layer, head) for name in ("raw", lens))
        maps = [pick.cells(standard), pick.cells(other)]
        same = np.allclose(maps[0], maps[1], atol=1e-6, equal_nan=True)  # float32 weights
        room = heat.room(other, self.size, panels=1 if same else 3, extra=0.55)
        place = canvas.whole_figure("compare", ax, figure, room.size)
        if same:
            _draw_once(place, other, standard, room.cell)
        else:
            _draw_three(place, other, [*maps, maps[0] - maps[1]], room.cell, self.scale)
        chosen = None in (self.layer, self.head) and data.sizes["layer"] * data.sizes["head"] > 1
        title = self.title if self.title is not None else _title(other, same=same, chosen=chosen)
        wide = place.bbox.width / place.dpi
        place.suptitle(canvas.wrapped(title, wide, theme.TITLE) + "\n")  # a line of air above the panels' own titles
        return canvas.root(place)


def _draw_three(
    place: canvases.Figure | canvases.SubFigure,
    other: xr.Dataset,
    maps: list[heat.Cells],
    cell: float,
    spacing: heat.Spacing,
) -> None:
    """Standard, effective and difference on one symmetric scale: a colour means the same in all three."""
    lens = str(other["lens"].values)
    names = ("standard", lens, f"standard − {lens}")
    scale = heat.scale(np.concatenate(maps), signed=True, spacing=spacing)
    panels = place.subplots(1, 3)
    for panel, weights, name in zip(panels, maps, names, strict=True):
        heat.draw_cells(panel, weights, scale)
        heat.name_sides(panel, other, cell, queries=panel is panels[0])
        panel.set_title(name)
    rows, columns = maps[0].shape
    heat.bar(panels[-1], scale, "weight", (cell * columns, cell * rows))


def _draw_once(
    place: canvases.Figure | canvases.SubFigure, other: xr.Dataset, standard: xr.Dataset, cell: float
) -> None:
    """The standard map alone, with the reason: equal pictures would say less."""
    weights = pick.cells(standard)
    panel = place.subplots()
    scale = heat.scale(weights, signed=False)
    heat.draw_cells(panel, weights, scale)
    heat.name_sides(panel, standard, cell)
    rows, columns = weights.shape
    heat.bar(panel, scale, heat.quantity("raw"), (cell * columns, cell * rows))
    canvas.note(panel, _why_same(other), wide=cell * columns)


def _why_same(other: xr.Dataset) -> str:
    lens = str(other["lens"].values)
    if "null" in other and int(other["null"]) == 0:
        return (
            f"{int(other['n'])} tokens, rank {int(other['rank'])}: all of this attention reaches the output, "
            f"so {lens} attention is the same."
        )
    return f"The lens {lens} gives the same map as standard attention here."


def _title(other: xr.Dataset, *, same: bool, chosen: bool) -> str:
    where = pick.label(other)
    if same:
        return f"{where} · standard attention"
    first = f"{where}, the head that changes most" if chosen else where
    if "share" not in other or not np.isfinite(float(other["share"])):
        return first
    share = float(other["share"])
    return (
        f"{first}\n{int(other['n'])} tokens, rank {int(other['rank'])}: {share:.0%} of this attention is "
        "effective "
        f"(size of the {other['lens'].values} map ÷ size of the standard map)"
    )


def _other(data: xr.Dataset, lens: str | None) -> str:
    """The lens to compare with standard attention."""
    pick.need(data, "weights")
    names = [str(name) for name in data["lens"].values]
    others = [name for name in names if name != "raw"]
    if "raw" not in names or not others:
        raise InputError(
            "The figure 'compare' needs the lens 'raw' and another one, but the data has "
            f"{', '.join(names)}. View the same trace through both: "
            "draw([view(trace, 'raw'), view(trace, 'effective')], 'compare')."
        )
    if lens is None:
        return others[0]
    if lens == "raw":
        raise InputError(f"lens='raw' would compare standard attention with itself. Give one of {', '.join(others)}.")
    return str(pick.one_lens(data, lens)["lens"].values)


def _changed_most(data: xr.Dataset, lens: str, layer: int | None, head: int | None) -> tuple[int, int]:
    """The layer and head asked for; what is left open is where the smallest part reaches the output."""
    other, standard = pick.one_lens(data, lens), pick.one_lens(data, "raw")
    layers = [layer] if layer is not None else data["layer"].values
    heads = [head] if head is not None else data["head"].values
    for what, label in (("layer", layer), ("head", head)):
        pick.place(data, what, label)
    if "share" in other and bool(other["share"].notnull().any()):
        kept = other["share"]
    else:
        kept = -abs(standard["weights"] - other["weights"]).sum(("query", "key"))
    kept = kept.sel(layer=layers, head=heads).fillna(np.inf)
    row, column = np.unravel_index(int(kept.values.argmin()), kept.shape)
    return int(kept["layer"][row]), int(kept["head"][column])
