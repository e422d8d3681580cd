"""Raw attention, another lens and their difference, side by side."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.core.prose import join_words
from headscope.plotting import canvas, heatmap, scales, selection, theme
from headscope.plotting.panels import PanelGrid, open_grid


@dataclass(frozen=True)
class Compare(Figure):
    """Two maps of one head and the second minus the first, all on one scale: two lenses, two models or two texts.

    The first is the lens `raw`, or else the first of the data; `lens` selects the other where there are several.
    Without `layer` and `head` it shows the head that changes most. Where the maps are equal it draws one of them and
    says why; where the tokens differ it draws no difference, and the first head by default. Colors are those of
    `matrix` for the second map: linear up to the 99.5 % quantile of its absolute weights, or up to `limit`. `scale`
    sets linear, root or log, and `cmap` a colour map of matplotlib. `size` is the width in inches.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: scales.Spacing = "linear"
    limit: float | None = None
    cmap: scales.ColourMap = None

    cites = ("brunner2020", "sun2021")

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw three panels, two where the tokens differ, or one where the maps are equal."""
        names = _select_sides(data, self.lens)
        layer, head = _select_head(data, names, self.layer, self.head)
        sides = [selection.select_head(data, name, layer, head) for name in names]
        panels = _make_panels(sides)
        signed = len(panels) == 3 or any(map(selection.is_signed, sides))
        weights = np.concatenate([np.ravel(selection.visible_weights(side)) for side in panels.values()])
        equal = len(panels) == 1
        scale = scales.weight_scale(
            weights,
            signed=signed and not equal,
            spacing=self.scale,
            limit=self.limit,
            cmap=self.cmap,
            like=("" if equal else names[1], selection.visible_weights(sides[1])),
        )
        automatic = None in (self.layer, self.head) and data.sizes["layer"] * data.sizes["head"] > 1
        searched = ("head" if data.sizes["head"] > 1 else "layer") if automatic else None
        title = self.title if self.title is not None else _title(sides, len(panels), searched)
        layout = _fit_panels(panels, self.size, title)
        figure = target.open_panels(*layout.size)
        if not target.is_new:
            layout = _fit_panels(panels, canvas.figure_width(figure), title)
        places = _make_grid(len(panels), layout.size[0])
        grid = open_grid(figure, places[0] * places[1], places[1])
        _draw_panels(grid, panels, layout, scale)
        if equal:
            below = scales.bar_height(scale, "attention weight", layout.size[0] - 1.2) if layout.below else 0.0
            canvas.add_note(grid.panels[0], _why_equal(sides[1], names[0]), width=layout.size[0] - 1.2, below=below)
        grid.write(title=title)


def _make_panels(sides: list[xr.Dataset]) -> dict[str, xr.Dataset]:
    """Return the maps to draw by their titles: one where both are equal, and the difference where tokens agree."""
    first, second = sides
    names = [str(side["lens"].values) for side in sides]
    if not _same_tokens(first, second):
        return dict(zip(names, sides, strict=True))
    maps = [selection.visible_weights(side) for side in sides]
    if np.allclose(maps[0], maps[1], atol=1e-6, equal_nan=True):  # float32 weights
        return {"": second}
    difference = second.assign(weights=(second["weights"].dims, maps[1] - maps[0]))
    return {names[0]: first, names[1]: second, f"{names[1]} − {names[0]}": difference}


def _same_tokens(first: xr.Dataset, second: xr.Dataset) -> bool:
    return all(selection.token_texts(first, side) == selection.token_texts(second, side) for side in ("query", "key"))


def _fit_panels(panels: dict[str, xr.Dataset], width: float | None, title: str) -> heatmap.MapLayout:
    """Return the sizes of the figure for its largest map, with height for the title and for a note below one map."""
    largest = max(panels.values(), key=lambda side: max(side.sizes["query"], side.sizes["key"]))
    size = theme.text_size("title")
    lines = canvas.wrap_text(title, (width or theme.PAGE[0]) - 0.2, size).count("\n") + 1
    extra = 1.25 * lines * size / 72 + (0.75 if len(panels) == 1 else 0.2)
    grid, shared = _make_grid(len(panels), width), len(panels) != 2
    return heatmap.fit_heatmap(largest, width, grid=grid, shared=shared, extra=extra)


def _make_grid(panels: int, width: float | None) -> tuple[int, int]:
    """Return rows and columns of panels; in a narrow figure there are two rows."""
    narrow = width is not None and width < theme.NARROW
    return (2, panels - 1) if narrow and panels > 1 else (1, panels)


def _draw_panels(
    grid: PanelGrid, panels: dict[str, xr.Dataset], layout: heatmap.MapLayout, scale: scales.ColourScale
) -> None:
    """Draw maps by their titles on one scale, with a colour bar."""
    shared = len(panels) == 3
    rows, columns = (max(side.sizes[name] for side in panels.values()) for name in ("query", "key"))
    box = (layout.cell * columns, layout.cell * rows)
    for index, (panel, side) in enumerate(zip(grid.panels, panels.values(), strict=False)):
        cell = min(box[0] / side.sizes["key"], box[1] / side.sizes["query"])
        heatmap.draw_cells(panel, selection.visible_weights(side), scale)
        first, upper = index % grid.columns == 0, index < grid.columns
        heatmap.label_axes(panel, side, cell, queries=first or not shared, keys=upper or not shared)
    grid.name_panels(panels, width=max(box[0], 0.9))
    text = "weight" if len(panels) > 1 else "attention weight"
    if len(grid.panels) > len(panels):  # the colour bar of three panels is in place of the fourth
        host = grid.panels[-1]
        host.set_axis_off()
        bar_axes = host.inset_axes((0.05, 0.62, 0.9, 0.09))
        scales.draw_colour_bar(bar_axes, scale, text, (0.9 * box[0], box[0]), below=True)
    else:
        scales.add_colour_bar(grid.panels[-1], scale, text, box, below=layout.below)


def _why_equal(lens_map: xr.Dataset, baseline: str) -> str:
    lens = str(lens_map["lens"].values)
    if "null" in lens_map and int(lens_map["null"]) == 0:
        return selection.explain_equality(lens_map)
    return f"{lens} gives the same map as {baseline} here."


def _title(sides: list[xr.Dataset], panels: int, searched: str | None) -> str:
    """Return a title with the head, and "the head that changes most" or "the layer" where that was searched for."""
    lens_map, baseline = sides[1], str(sides[0]["lens"].values)
    head = selection.head_label(lens_map)
    if panels == 1:
        return f"{head} · {baseline} attention" if baseline == "raw" else f"{head} · {baseline}"
    if panels == 2:
        return head
    first = f"{head}, the {searched} that changes most" if searched else head
    if baseline != "raw" or "share" not in lens_map or not np.isfinite(float(lens_map["share"])):
        return first
    tokens, rank, share = int(lens_map["n"]), int(lens_map["rank"]), float(lens_map["share"])
    return (
        f"{first}\n{tokens} tokens, rank {rank}: {100 * share:.0f} % of this attention is effective "
        f"(norm of the {lens_map['lens'].values} map ÷ norm of the raw map)"
    )


def _select_sides(data: xr.Dataset, lens: str | None) -> tuple[str, str]:
    """Return the names of the two maps to compare; the first is `raw` where the data has it."""
    selection.require_variables(data, "weights")
    names = [str(name) for name in data["lens"].values]
    if len(names) < 2:
        raise InputError(
            f"The figure 'compare' needs two maps, but the data has only '{names[0]}'. View one trace through two "
            "lenses, draw([view(trace, 'raw'), view(trace, 'effective')], 'compare'), or draw the maps of two models "
            "or texts by their names, draw({'before': maps, 'after': others}, 'compare')."
        )
    first = "raw" if "raw" in names else names[0]
    others = [name for name in names if name != first]
    if lens == first:
        attention = "raw attention" if first == "raw" else f"'{first}'"
        raise InputError(f"lens='{lens}' would compare {attention} with itself. Give {join_words(others, 'or')}.")
    return first, others[0] if lens is None else str(selection.select_maps(data, lens)["lens"].values)


def _select_head(data: xr.Dataset, names: tuple[str, str], layer: int | None, head: int | None) -> tuple[int, int]:
    """Return the requested layer and head; by default those that change most, where the tokens are the same."""
    first, second = (selection.select_maps(data, name) for name in names)
    row, column = (selection.axis_index(data, axis, label) for axis, label in (("layer", layer), ("head", head)))
    if not _same_tokens(first, second):
        return int(data["layer"][row]), int(data["head"][column])
    if names[0] == "raw" and "share" in second and bool(second["share"].notnull().any()):
        share = second["share"]
    else:
        share = -abs(first["weights"] - second["weights"]).sum(("query", "key"))
    rows = [row] if layer is not None else range(data.sizes["layer"])
    columns = [column] if head is not None else range(data.sizes["head"])
    share = share.transpose("layer", "head").isel(layer=rows, head=columns).fillna(np.inf)
    best = np.unravel_index(int(share.values.argmin()), share.shape)
    return int(share["layer"][best[0]]), int(share["head"][best[1]])
