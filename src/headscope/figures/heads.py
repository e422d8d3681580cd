"""A number for every head: layers down, heads across, one panel for each lens."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure
from headscope.plotting import canvas, fonts, heat, theme
from headscope.plotting import head_cells as grid
from headscope.results import measured
from headscope.results.stamp import read_provenance

SMALLEST, LARGEST = 0.24, 0.36  # inches a cell, by default
WIDEST = 8.5  # inches of cells side by side; further panels go below
BESIDE = 1.25  # inches for the names of layers and the colour bar


@dataclass(frozen=True)
class Heads(Figure):
    """What was measured for every head, with the numbers, in panels that share one colour scale.

    `variable` is the first by default; `lens` names some of the lenses, as raw+effective. `at` chooses places along
    further axes, as role=sep+source=others. Differences that `hs.compare` gives are drawn on a symmetric scale, bold
    where they are significant. Cells without a value are hatched. `size` is the width in inches.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    title: str | None = None
    size: float | None = None

    @theme.applied()
    def __call__(
        self,
        data: xr.Dataset,
        *,
        ax: Axes | None = None,
        figure: canvases.Figure | canvases.SubFigure | None = None,
    ) -> canvases.Figure:
        """One panel for each lens."""
        chosen = measured.part(data, self.variable, lens=self.lens, at=self.at)
        measured.closed("heads", chosen)
        chosen = chosen.transpose("lens", "layer", "head", ...)
        columns, cell, size = _room(chosen, self.size)
        place = canvas.whole_figure("heads", ax, figure, size)
        if figure is not None:
            columns, cell, size = _room(chosen, place.bbox.width / place.dpi)
        _draw_panels(place, chosen, columns, cell)
        wide = size[0] - BESIDE / 2
        place.suptitle(canvas.wrapped(self.title if self.title is not None else _title(chosen), wide, theme.TITLE))
        caption = canvas.wrapped(_caption(data, chosen, cell), wide, theme.NOTE)
        place.supxlabel(caption, fontsize=theme.NOTE, color=theme.quiet)
        return canvas.root(place)


def _draw_panels(place: canvases.Figure | canvases.SubFigure, chosen: xr.Dataset, columns: int, cell: float) -> None:
    """Panels row by row, the colour bar beside the first row."""
    many, layers, heads = (chosen.sizes[dim] for dim in ("lens", "layer", "head"))
    table = chosen["value"].values.astype(float)  # lens layer head
    scale, texts = grid.value_scale(table, signed="p" in chosen), _texts(chosen)
    size = grid.number_size(texts, cell, bold="significant" in chosen)
    panels = place.subplots(-(-many // columns), columns, squeeze=False).ravel()
    for index, panel in enumerate(panels):
        if index >= many:
            panel.remove()
            continue
        marked = chosen["significant"].values[index].astype(np.int8) if "significant" in chosen else None
        grid.draw_numbers(panel, table[index], scale, texts[index * layers : (index + 1) * layers], size, marked)
        grid.name_heads(panel, chosen, cell, layers=index % columns == 0)
        panel.spines[:].set(visible=True, color=theme.hatch, linewidth=0.4)
        if lens := str(chosen["lens"].values[index]):
            panel.set_title(_fitting(lens, cell * heads), fontsize=theme.LABEL)
    heat.bar(panels[min(columns, many) - 1], scale, chosen.attrs["label"], (cell * heads, cell * layers))


def _texts(chosen: xr.Dataset) -> list[list[str]]:
    """The numbers of all panels one below the other, all in one form."""
    return grid.written(chosen["value"].values.astype(float).reshape(-1, chosen.sizes["head"]))


def _fitting(lens: str, wide: float) -> str:
    """A lens in lines that fit above a panel, broken after a comma or colon."""
    if fonts.width([lens]) * theme.LABEL <= wide:
        return lens
    return lens.replace(",", ",\n").replace(":", ":\n", 1)


def _title(chosen: xr.Dataset) -> str:
    name, at = chosen.attrs["variable"].replace("_", " "), chosen.attrs["at"]
    what = f"difference in {name}" if "p" in chosen else name
    return f"{what} · {at}" if at else what if "p" in chosen else f"{what} of every head"


def _caption(data: xr.Dataset, chosen: xr.Dataset, cell: float) -> str:
    """Over how many examples, what bold means, and what is missing."""
    said = [f"{count} examples" if (count := measured.counted(chosen)) else ""]
    if "significant" in chosen:
        facts = read_provenance(data)
        rule = {"holm": "Holm", "benjamini_hochberg": "Benjamini–Hochberg"}.get(str(facts.get("correction")), "")
        after = f" after {rule} correction" if rule else ""
        printed = grid.number_size(_texts(chosen), cell, bold=True) >= grid.SMALLEST_NUMBER
        said.append(f"{'bold' if printed else 'dot'}: p < {facts.get('level', 0.05):g}{after}")
    if missing := int(np.isnan(chosen["value"].values).sum()):
        said.append(f"hatched: no value ({missing})")
    return " · ".join(each for each in said if each)


def _room(chosen: xr.Dataset, size: float | None) -> tuple[int, float, tuple[float, float]]:
    """How many panels stand side by side, the side of a cell, and the size of the figure in inches."""
    many, heads, layers = (chosen.sizes[dim] for dim in ("lens", "head", "layer"))
    side_by_side = max(1, min(many, int(WIDEST / (heads * SMALLEST))))
    texts, bold = _texts(chosen), "significant" in chosen
    for columns in (*range(side_by_side, 0, -1), side_by_side):  # fewer, where only then numbers can be read
        beside = BESIDE + 0.12 * (columns - 1)
        fits = ((7.0 if size is None else size) - beside) / (columns * heads)
        cell = max(SMALLEST, min(LARGEST, fits)) if size is None else fits
        if grid.number_size(texts, cell, bold=bold) >= grid.SMALLEST_NUMBER:
            break
    if cell < 0.02:
        raise InputError(f"A figure {size:g} inches wide has no room beside its labels. Give a larger size.")
    wide = max(2.4, columns * heads * cell + beside) if size is None else size
    rows = -(-many // columns)
    return columns, cell, (wide, rows * (layers * cell + 0.55) + 0.6)
