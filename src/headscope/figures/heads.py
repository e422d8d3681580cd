"""A number for every head: layers down, heads across, one panel for each lens."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as mpl

from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, fonts, head_cells, heatmap, theme
from headscope.results.select import require_shown_axes, select_variable
from headscope.results.stamp import read_provenance
from headscope.results.summarize import format_count

MIN_CELL, MAX_CELL = 0.24, 0.36  # inches, by default
MAX_WIDTH = 8.5  # inches of cells side by side; further panels go below
MARGIN = 1.25  # inches for layer labels and the colour bar


@dataclass(frozen=True)
class Heads(Figure):
    """A measured variable for every head, with the numbers, in panels that share one colour scale.

    `variable` is the first by default; `lens` selects lenses, as raw+effective. `at` selects labels along further
    axes, as role=sep+source=others. Differences from `hs.compare` are drawn on a symmetric scale, bold where they are
    significant. Cells without a value are hatched. `size` is the width in inches.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw one panel for each lens."""
        chosen = select_variable(data, self.variable, lens=self.lens, at=self.at)
        require_shown_axes("heads", chosen)
        chosen = chosen.transpose("lens", "layer", "head", ...)
        columns, cell, size = _fit_panels(chosen, self.size)
        figure = target.open_panels(*size)
        if not target.is_new:
            columns, cell, size = _fit_panels(chosen, figure.bbox.width / figure.dpi)
        _draw_panels(figure, chosen, columns, cell)
        width = size[0] - MARGIN / 2
        figure.suptitle(canvas.wrap_text(self.title if self.title is not None else _title(chosen), width, theme.TITLE))
        caption = canvas.wrap_text(_caption(data, chosen, cell), width, theme.NOTE)
        figure.supxlabel(caption, fontsize=theme.NOTE, color=theme.quiet)


def _draw_panels(figure: mpl.Figure | mpl.SubFigure, chosen: xr.Dataset, columns: int, cell: float) -> None:
    """Draw panels row by row, with the colour bar beside the first row."""
    lenses, layers, heads = (chosen.sizes[dim] for dim in ("lens", "layer", "head"))
    table = chosen["value"].values.astype(float)  # lens layer head
    scale, texts = head_cells.value_scale(table, signed="p" in chosen), _format_table(chosen)
    size = head_cells.fit_font_size(texts, cell, bold="significant" in chosen)
    panels = figure.subplots(-(-lenses // columns), columns, squeeze=False).ravel()
    for index, panel in enumerate(panels):
        if index >= lenses:
            panel.remove()
            continue
        marked = chosen["significant"].values[index].astype(np.int8) if "significant" in chosen else None
        rows = texts[index * layers : (index + 1) * layers]
        head_cells.draw_head_cells(panel, table[index], scale, rows, size, marked)
        head_cells.label_heads(panel, chosen, cell, layers=index % columns == 0)
        panel.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)
        if lens := str(chosen["lens"].values[index]):
            panel.set_title(_break_lens(lens, cell * heads), fontsize=theme.LABEL)
    last = panels[min(columns, lenses) - 1]
    heatmap.add_colour_bar(last, scale, chosen.attrs["label"], (cell * heads, cell * layers))


def _format_table(chosen: xr.Dataset) -> list[list[str]]:
    """Format the numbers of all panels alike, one panel below the other."""
    return head_cells.format_numbers(chosen["value"].values.astype(float).reshape(-1, chosen.sizes["head"]))


def _break_lens(lens: str, width: float) -> str:
    """Break the name of a lens after commas and the colon where it is wider than a panel."""
    if fonts.label_width([lens]) * theme.LABEL <= width:
        return lens
    return lens.replace(",", ",\n").replace(":", ":\n", 1)


def _title(chosen: xr.Dataset) -> str:
    name, at = chosen.attrs["variable"].replace("_", " "), chosen.attrs["at"]
    text = f"difference in {name}" if "p" in chosen else name
    return f"{text} · {at}" if at else text if "p" in chosen else f"{text} of every head"


def _caption(data: xr.Dataset, chosen: xr.Dataset, cell: float) -> str:
    """Return the number of examples, what bold means, and how many values are missing."""
    texts = [f"{count} examples" if (count := format_count(chosen)) else ""]
    if "significant" in chosen:
        facts = read_provenance(data)
        rule = {"holm": "Holm", "benjamini_hochberg": "Benjamini–Hochberg"}.get(str(facts.get("correction")), "")
        after = f" after {rule} correction" if rule else ""
        legible = head_cells.fit_font_size(_format_table(chosen), cell, bold=True) >= head_cells.MIN_FONT_SIZE
        texts.append(f"{'bold' if legible else 'dot'}: p < {facts.get('level', 0.05):g}{after}")
    if missing := int(np.isnan(chosen["value"].values).sum()):
        texts.append(f"hatched: no value ({missing})")
    return " · ".join(filter(None, texts))


def _fit_panels(chosen: xr.Dataset, width: float | None) -> tuple[int, float, tuple[float, float]]:
    """Return the number of panels side by side, the side of a cell, and the size of the figure in inches."""
    lenses, heads, layers = (chosen.sizes[dim] for dim in ("lens", "head", "layer"))
    most = max(1, min(lenses, int(MAX_WIDTH / (heads * MIN_CELL))))
    texts, bold = _format_table(chosen), "significant" in chosen
    for columns in (*range(most, 0, -1), most):  # fewer columns where only then the numbers are legible
        margin = MARGIN + 0.12 * (columns - 1)
        cell = ((7.0 if width is None else width) - margin) / (columns * heads)
        cell = max(MIN_CELL, min(MAX_CELL, cell)) if width is None else cell
        if head_cells.fit_font_size(texts, cell, bold=bold) >= head_cells.MIN_FONT_SIZE:
            break
    if cell < 0.02:
        raise heatmap.too_narrow(width)
    total = max(2.4, columns * heads * cell + margin) if width is None else width
    return columns, cell, (total, -(-lenses // columns) * (layers * cell + 0.55) + 0.6)
