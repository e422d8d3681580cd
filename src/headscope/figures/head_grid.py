"""Every head at once: layers down, heads across."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure
from headscope.core.spec import check_choices
from headscope.patterns.classes import LETTERS, NAMES
from headscope.plotting import canvas, heat, pick, series, theme
from headscope.plotting import head_cells as grid
from headscope.results import measured

LARGEST = 64
"""A thumbnail has at most this many pixels a side; each shows the largest weight it stands for."""


@dataclass(frozen=True)
class HeadGrid(Figure):
    """A thumbnail of every head, or with `colour` one coloured cell for each, by a value such as "share".

    With `colour="patterns"` each cell has the letter and the colour of the class that most examples have there; where
    fewer have it, it is paler.

    All thumbnails share one scale, on which colours follow the square root of a weight, or the weight itself
    with `scale="linear"`. Numbers are printed in coloured cells wherever they can be set in 4 points or more,
    and left out elsewhere. `size` is the width in inches.
    """

    colour: str | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: heat.Spacing = "root"

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
        """The grid of heads."""
        colour = self.colour if self.colour is not None or "weights" in data else _first(data)
        one = (
            pick.one_lens(data, self.lens) if colour is None else _measured(_lettered(data, colour), self.lens, colour)
        )
        lens = str(one["lens"].values)
        cell, size = _room(one, self.size, thumbnails=colour is None, beside=2.55 if "letter" in one else 1.3)
        place = canvas.one_panel("head_grid", ax, figure, size)
        shape = (one.sizes["layer"], one.sizes["head"])
        cell = cell if ax is None else heat.cell_in(place, shape)
        if colour is None:
            scale, text = _draw_thumbnails(place, one, self.scale), heat.quantity(lens)
        elif "letter" in one:
            scale, text = None, ""
            _draw_classes(place, one.transpose("layer", "head", ...), colour, cell)
        else:
            table = one[colour].transpose("layer", "head").values.astype(float)
            scale, text = grid.value_scale(table, signed=f"{colour}_p" in one), _meaning(one, colour)
            texts = grid.written(table)
            grid.draw_numbers(place, table, scale, texts, grid.number_size(texts, cell))
        grid.name_heads(place, one)
        if scale is not None:
            heat.bar(place, scale, text, (cell * shape[1], cell * shape[0]))
        default = f"{lens} · every head" if colour is None else f"{lens} · {colour} of every head"
        place.set_title(self.title if self.title is not None else default)
        return canvas.root(place.figure)


def pooled(weights: heat.Cells, largest: int = LARGEST) -> heat.Cells:
    """The same map with at most `largest` pixels a side, each the weight of largest size that falls into it.

    >>> pooled(np.array([[0.1, -0.4], [0.3, 0.2]]), largest=1)
    array([[-0.4]])
    """
    for axis in (-1, -2):
        many = weights.shape[axis]
        if many > largest:
            edges = np.arange(largest) * many // largest
            high = np.fmax.reduceat(weights, edges, axis=axis)
            low = np.fmin.reduceat(weights, edges, axis=axis)
            weights = np.where(-low > high, low, high)
    return weights


def _draw_thumbnails(ax: Axes, one: xr.Dataset, spacing: heat.Spacing) -> heat.Scale:
    """All thumbnails as one picture, with white between them."""
    weights = pooled(pick.cells(one.transpose(..., "head", "layer", "query", "key")))  # head layer query key
    scale = heat.scale(weights, signed=pick.is_signed(one), spacing=spacing)
    heads, layers, rows, columns = weights.shape
    down, across = (max(1, round(side * 0.06)) for side in (rows, columns))
    picture = np.zeros((layers, rows + 2 * down, heads, columns + 2 * across, 4))
    painted = scale.paint(weights)
    painted[np.isnan(weights)] = 0  # the ground shows through
    picture[:, down:-down, :, across:-across] = painted.transpose(1, 2, 0, 3, 4)
    picture = picture.reshape(layers * (rows + 2 * down), heads * (columns + 2 * across), 4)
    _frame(
        ax,
        (layers, heads),
        across / (columns + 2 * across),
        down / (rows + 2 * down),
        bool(np.isnan(weights).any()),
    )
    picture = (255 * picture).round().astype(np.uint8)
    ax.imshow(picture, extent=(-0.5, heads - 0.5, layers - 0.5, -0.5), aspect="equal", interpolation="antialiased")
    return scale


def _draw_classes(ax: Axes, one: xr.Dataset, colour: str, cell: float) -> None:
    """Every head in the colour and with the letter of its class, paler where fewer examples have it."""
    names = [str(each) for each in one["pattern"].values]
    areas = [{**style.area, "hatch": "", "edgecolor": theme.quiet} for style in series.styles(names, "classes")]
    share, place = np.nan_to_num(one[colour].values.astype(float)), one["letter"].values.astype(int)
    full = np.array([*(area["facecolor"] for area in areas), (1.0, 1.0, 1.0)])[place]
    painted = 1 - share[..., None] * (1 - full)
    texts = [[[*map(_letter, names), "–"][each] for each in row] for row in place]
    size = grid.number_size(texts, cell)
    heat.hide(ax, one[colour].values.astype(float))
    ax.imshow(np.dstack([painted, place >= 0]), aspect="equal", interpolation="nearest")
    for (row, column), paint in np.ndenumerate(place) if size >= grid.SMALLEST_NUMBER else ():
        ink = theme.ink_on(painted[row, column]) if paint >= 0 else theme.quiet
        ax.text(column, row, texts[row][column], ha="center", va="center", fontsize=size, color=ink)
    handles = series.patches(areas, [f"{_letter(each)}  {NAMES.get(each, each)}" for each in names])
    below = "paler: fewer examples\nare of this class"
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02), title=below, alignment="left")


def _letter(name: str) -> str:
    return LETTERS.get(name, "?")


def _frame(ax: Axes, shape: tuple[int, int], across: float, down: float, hidden: bool) -> None:
    """A thin frame for each thumbnail, hatched inside where queries could not see every key."""
    boxes = [
        Rectangle((head - 0.5 + across, layer - 0.5 + down), 1 - 2 * across, 1 - 2 * down)
        for layer, head in np.ndindex(*shape)
    ]
    ground: dict[str, Any] = {"facecolor": theme.hidden, "hatch": "//////"} if hidden else {"facecolor": "none"}
    ax.add_collection(PatchCollection(boxes, edgecolor=theme.hatch, linewidth=0.6, zorder=0, **ground))


_MEANINGS = {
    "share": "effective share (size ÷ size of standard map)",
    "rank": "rank of the values",
    "null": "dimensions that never reach the output",
    "n": "tokens",
    "residual": "relative difference of the output",
}


def _room(one: xr.Dataset, size: float | None, *, thumbnails: bool, beside: float) -> tuple[float, tuple[float, float]]:
    """The side of a cell, and the size of the figure, in inches."""
    heads, layers = one.sizes["head"], one.sizes["layer"]
    largest = 0.9 if thumbnails else 0.45
    if size is not None and size <= beside:
        raise InputError(f"A figure {size} inches wide has no room beside its labels. Give a larger size.")
    cell = (size - beside) / heads if size is not None else min(largest, 16.0 / max(heads, layers))
    return cell, (heads * cell + beside, layers * cell + 0.65)


def _lettered(data: xr.Dataset, colour: str) -> xr.Dataset:
    """The same data; but where the value is one for each pattern, that of the most frequent one, and which that is."""
    if colour not in data or "pattern" not in data[colour].dims or f"{colour}_p" in data:
        return data
    table = data[colour]
    most = table.fillna(-1).argmax("pattern").where(table.notnull().any("pattern"), -1)
    return data.drop_vars(colour).assign({colour: table.max("pattern"), "letter": most})


def _measured(data: xr.Dataset, lens: str | None, colour: str) -> xr.Dataset:
    """The data of one lens, once it is sure that it has this value for every head."""
    pick.need(data)
    whole = measured.opened(data)
    whole = whole.isel(site=0) if whole.sizes.get("site") == 1 else whole
    known = [str(name) for name, table in whole.data_vars.items() if set(table.dims) == {"lens", "layer", "head"}]
    if colour in measured.names(whole) and colour not in known:
        measured.closed("head_grid", measured.part(whole, colour), hint="Draw 'heads', with")
    if colour not in known:
        raise unknown_name("value of every head in this data", colour, known)
    names = [str(name) for name in whole["lens"].values]
    if lens is None:  # the first lens that has the value
        has = whole[colour].notnull().any(("layer", "head")).values
        lens = names[int(has.argmax())]
    return pick.select_lens(whole, lens)


def _first(data: xr.Dataset) -> str | None:
    """What a Dataset without maps is coloured by."""
    known = [name for name in measured.names(data) if set(data[name].dims) <= {"lens", "site", "layer", "head"}]
    return known[0] if known else "patterns" if "patterns" in data else None


def _meaning(one: xr.Dataset, colour: str) -> str:
    return _MEANINGS[colour] if colour in _MEANINGS else measured.label(one, colour)
