"""A number for every head: layers down, heads across, one panel for each lens."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.figure import Figure, Target
from headscope.core.provenance import read_provenance
from headscope.plotting import canvas, head_cells, heatmap, scales, theme
from headscope.plotting.panels import PanelGrid, open_grid
from headscope.results.select import require_shown_axes, select_variable
from headscope.results.summarize import format_count

MAX_CELL = 0.36  # inches, by default
MIN_HEADS = 4  # fewer do not fill a given width


@dataclass(frozen=True)
class Heads(Figure):
    """A measured variable for every head, with the numbers, in panels that share one colour scale.

    `variable` is the first by default; `lens` selects lenses, as raw+effective. `at` selects labels along further
    axes, as role=sep+source=others. Differences from `hs.compare` are drawn on a symmetric scale, bold where they are
    significant. Cells without a value are hatched. `cmap` is a colour map of matplotlib, `size` the width in inches.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    title: str | None = None
    size: float | None = None
    cmap: scales.ColourMap = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw one panel for each lens."""
        chosen = select_variable(data, self.variable, lens=self.lens, at=self.at)
        require_shown_axes("heads", chosen)
        chosen = chosen.transpose("lens", "layer", "head", ...)
        layout = _fit_panels(chosen, self.size)
        figure = target.open_panels(*layout.size)
        if not target.is_new:
            layout = _fit_panels(chosen, canvas.figure_width(figure))
        scale = head_cells.value_scale(chosen["value"].values.astype(float), signed="p" in chosen, cmap=self.cmap)
        grid = open_grid(figure, chosen.sizes["lens"], layout.columns)
        _draw_panels(grid, chosen, layout, scale)
        title = self.title if self.title is not None else _title(chosen)
        grid.write(title=title, note=_caption(data, chosen, layout.cell))
        if target.is_new and layout.below:
            grid.fit_cells((chosen.sizes["layer"], chosen.sizes["head"]), 1.1 * layout.cell)


@dataclass(frozen=True)
class PanelLayout:
    """How many panels are side by side, and sizes in inches."""

    columns: int
    cell: float
    size: tuple[float, float]
    below: bool  # the colour bar is below the panels


def _draw_panels(grid: PanelGrid, chosen: xr.Dataset, layout: PanelLayout, scale: scales.ColourScale) -> None:
    """Draw a panel for each lens, with the colour bar beside the first row or below the last."""
    cell, layers, heads = layout.cell, chosen.sizes["layer"], chosen.sizes["head"]
    table = chosen["value"].values.astype(float)  # lens layer head
    texts = _format_table(chosen)
    size = head_cells.fit_font_size(texts, cell, bold="significant" in chosen)
    for index, panel in enumerate(grid.panels):
        marked = chosen["significant"].values[index].astype(np.int8) if "significant" in chosen else None
        rows = texts[index * layers : (index + 1) * layers]
        head_cells.draw_head_cells(panel, table[index], scale, rows, size, marked)
        head_cells.label_heads(panel, chosen, cell, layers=index % layout.columns == 0)
        panel.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)
    grid.name_panels((str(lens) for lens in chosen["lens"].values), width=cell * heads)
    if layout.below and layout.columns > 1:
        grid.add_color_bar(scale, chosen.attrs["label"])
    else:
        last = grid.panels[-1] if layout.below else grid.rows[0][-1]
        scales.add_colour_bar(last, scale, chosen.attrs["label"], (cell * heads, cell * layers), below=layout.below)


def _format_table(chosen: xr.Dataset) -> list[list[str]]:
    """Format the numbers of all panels alike, one panel below the other."""
    return head_cells.format_numbers(chosen["value"].values.astype(float).reshape(-1, chosen.sizes["head"]))


def _title(chosen: xr.Dataset) -> str:
    name, at = chosen.attrs["variable"].replace("_", " "), chosen.attrs["at"]
    if "title" in chosen["value"].attrs:
        return str(chosen["value"].attrs["title"])
    text = f"difference in {name}" if "p" in chosen else name
    return f"{text} · {at}" if at else text if "p" in chosen else f"{text} of every head"


def _caption(data: xr.Dataset, chosen: xr.Dataset, cell: float) -> str:
    """Return the number of examples, what bold means, and how many values are missing."""
    texts = [f"{count} examples" if (count := format_count(chosen)) else ""]
    if "significant" in chosen:
        facts = read_provenance(data)
        rule = {"holm": "Holm", "benjamini_hochberg": "Benjamini–Hochberg"}.get(str(facts.get("correction")), "")
        after = f" after {rule} correction" if rule else ""
        legible = head_cells.fit_font_size(_format_table(chosen), cell, bold=True) >= theme.MIN_FONT_SIZE
        texts.append(f"{'bold' if legible else 'dot'}: p < {facts.get('level', 0.05):g}{after}")
    if missing := int(np.isnan(chosen["value"].values).sum()):
        texts.append(f"hatched: no value ({missing})")
    return " · ".join(filter(None, texts))


def _fit_panels(chosen: xr.Dataset, width: float | None) -> PanelLayout:
    """Return the layout with the most panels side by side whose numbers are legible, if there is one."""
    lenses, heads, layers = (chosen.sizes[dim] for dim in ("lens", "head", "layer"))
    below = width is not None and width < theme.NARROW
    texts, bold = _format_table(chosen), "significant" in chosen
    limits = theme.PAGE if width is None else (width, max(theme.PAGE[1], 1.3 * width))
    layouts = []
    for columns in range(lenses, 0, -1):
        rows = -(-lenses // columns)
        beside = 0.45 + (0.0 if below else 0.85) + 0.12 * (columns - 1)
        around = 0.55 * rows + 0.65 + (scales.BELOW if below else 0.0)
        cell = min((limits[0] - beside) / (columns * heads), (limits[1] - around) / (rows * layers))
        cell = min(MAX_CELL, cell) if width is None or heads < MIN_HEADS else cell
        total = max(2.4, columns * heads * cell + beside) if width is None else width
        layouts.append(PanelLayout(columns, cell, (total, rows * layers * cell + around), below))
        if head_cells.fit_font_size(texts, cell, bold=bold) >= theme.MIN_FONT_SIZE:
            return layouts[-1]
    best = max(layouts, key=lambda layout: layout.cell)
    if best.cell < 0.02:
        raise heatmap.too_narrow(limits[0])
    return best
