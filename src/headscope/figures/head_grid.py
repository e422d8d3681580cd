"""Every head at once: layers down, heads across."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from headscope.core.errors import unknown_name
from headscope.core.figure import Figure, Target
from headscope.patterns import LETTERS, NAMES
from headscope.plotting import canvas, head_cells, heatmap, scales, selection, series, theme
from headscope.results.select import head_variables, require_shown_axes, restore_axes, select_variable
from headscope.results.summarize import axis_label

MIN_CELL = 0.02  # inches

MAX_PIXELS = 64
"""Side of a thumbnail; each pixel shows the weight of largest absolute value that it covers."""


@dataclass(frozen=True)
class HeadGrid(Figure):
    """A thumbnail of every head, or with `colour` a cell for each, coloured by a value such as "share".

    With `colour="patterns"` each cell has the letter and colour of its most frequent class, paler where fewer examples
    belong to it.

    All thumbnails share one scale: linear up to the 99.5 % quantile of the absolute weights, or up to `limit`; `scale`
    sets linear, root or log. Coloured cells have numbers where these are large enough to read. `cmap` is a colour map
    of matplotlib, `size` the width in inches.
    """

    colour: str | None = None
    lens: str | None = None
    title: str | None = None
    size: float | None = None
    scale: scales.Spacing = "linear"
    limit: float | None = None
    cmap: scales.ColourMap = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the grid of heads."""
        colour = self.colour if self.colour is not None or "weights" in data else _first_variable(data)
        if colour is None:
            chosen = selection.select_maps(data, self.lens)
        else:
            chosen = _select_variable(_most_frequent(data, colour), self.lens, colour)
        lens, shape = str(chosen["lens"].values), (chosen.sizes["layer"], chosen.sizes["head"])
        largest = 0.9 if colour is None else 0.45
        below = self.size is not None and self.size < theme.NARROW
        cell, size = _fit_cells(chosen, self.size, largest=largest, below=below)
        if not below and cell * shape[0] < scales.SHORTEST:
            below = True
            cell, size = _fit_cells(chosen, self.size, largest=largest, below=below)
        ax = target.open_axes(*size)
        if not target.is_new:
            cell, below = heatmap.cell_size(ax, shape), scales.is_narrow(ax)
        scale: scales.ColourScale | None = None
        if colour is None:
            scale, text = self._draw_thumbnails(ax, chosen), heatmap.weight_label(chosen)
        elif "letter" in chosen:
            _draw_classes(ax, chosen.transpose("layer", "head", ...), colour, cell, below=below)
        else:
            table = chosen[colour].transpose("layer", "head").values.astype(float)
            scale = head_cells.value_scale(table, signed=f"{colour}_p" in chosen, cmap=self.cmap)
            texts = head_cells.format_numbers(table)
            text = selection.DIAGNOSTICS.get(colour) or axis_label(chosen, colour)
            head_cells.draw_head_cells(ax, table, scale, texts, head_cells.fit_font_size(texts, cell))
        head_cells.label_heads(ax, chosen, cell)
        if scale is not None:
            scales.add_colour_bar(ax, scale, text, (cell * shape[1], cell * shape[0]), below=below)
        default = f"{lens} · every head" if colour is None else f"{lens} · {colour} of every head"
        if "letter" in chosen:
            default += _name_only_class(chosen)
        canvas.set_title(ax, self.title if self.title is not None else default, max(cell * shape[1], 2.4))

    def _draw_thumbnails(self, ax: Axes, maps: xr.Dataset) -> scales.ColourScale:
        """Draw all thumbnails as one image, with white between them."""
        weights = selection.visible_weights(maps.transpose(..., "head", "layer", "query", "key"))
        signed = selection.is_signed(maps)
        scale = scales.weight_scale(weights, signed=signed, spacing=self.scale, limit=self.limit, cmap=self.cmap)
        _draw_tiles(ax, max_pool(weights), scale)
        return scale


def max_pool(weights: scales.Cells, pixels: int = MAX_PIXELS) -> scales.Cells:
    """Shrink a map to at most `pixels` a side, each the weight of largest absolute value in its cell.

    >>> max_pool(np.array([[0.1, -0.4], [0.3, 0.2]]), pixels=1)
    array([[-0.4]])
    """
    for axis in (-1, -2):
        size = weights.shape[axis]
        if size > pixels:
            edges = np.arange(pixels) * size // pixels
            high = np.fmax.reduceat(weights, edges, axis=axis)
            low = np.fmin.reduceat(weights, edges, axis=axis)
            weights = np.where(-low > high, low, high)
    return weights


def _draw_tiles(ax: Axes, weights: scales.Cells, scale: scales.ColourScale) -> None:
    """Draw maps of `head layer query key` as one image, with white between them."""
    heads, layers, rows, columns = weights.shape
    down, across = (max(1, round(side * 0.06)) for side in (rows, columns))
    image = np.zeros((layers, rows + 2 * down, heads, columns + 2 * across, 4))
    painted = scale.rgba(weights)
    painted[np.isnan(weights)] = 0  # the background shows through
    image[:, down:-down, :, across:-across] = painted.transpose(1, 2, 0, 3, 4)
    image = image.reshape(layers * (rows + 2 * down), heads * (columns + 2 * across), 4)
    borders = across / (columns + 2 * across), down / (rows + 2 * down)
    _draw_frames(ax, (layers, heads), borders, masked=bool(np.isnan(weights).any()))
    image = (255 * image).round().astype(np.uint8)
    ax.imshow(image, extent=(-0.5, heads - 0.5, layers - 0.5, -0.5), aspect="equal", interpolation="antialiased")


def _draw_classes(ax: Axes, chosen: xr.Dataset, colour: str, cell: float, *, below: bool) -> None:
    """Draw every head in the colour and with the letter of its class, paler where fewer examples have it."""
    names = [str(name) for name in chosen["pattern"].values]
    areas = [{**style.area, "hatch": "", "edgecolor": theme.quiet} for style in series.styles(names, "classes")]
    letters = [LETTERS.get(name, "?") for name in names]
    share, classes = np.nan_to_num(chosen[colour].values.astype(float)), chosen["letter"].values.astype(int)
    full = np.array([*(area["facecolor"] for area in areas), (1.0, 1.0, 1.0)])[classes]
    painted = 1 - share[..., None] * (1 - full)
    texts = [[[*letters, "–"][index] for index in row] for row in classes]
    size = head_cells.fit_font_size(texts, cell)
    heatmap.hatch_missing(ax, chosen[colour].values.astype(float))
    ax.imshow(np.dstack([painted, classes >= 0]), aspect="equal", interpolation="nearest")
    for (row, column), index in np.ndenumerate(classes) if size >= theme.MIN_FONT_SIZE else ():
        ink = theme.text_colour(painted[row, column]) if index >= 0 else theme.quiet
        heatmap.write_in_cell(ax, (row, column), texts[row][column], fontsize=size, color=ink)
    labels = [f"{letter}  {NAMES.get(name, name)}" for letter, name in zip(letters, names, strict=True)]
    handles = series.legend_patches(areas, labels)
    title = "paler: fewer examples\nare of this class"
    look: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02)}
    if below:
        columns = series.fit_legend(labels, cell * chosen.sizes["head"])[0]
        look = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": columns}
    ax.legend(handles=handles, title=title.replace("\n", " ") if below else title, alignment="left", **look)


def _name_only_class(chosen: xr.Dataset) -> str:
    """Return that all heads are of one class, where they are; else nothing."""
    classes = {int(index) for index in chosen["letter"].values.ravel()} - {-1}
    if len(classes) != 1 or chosen["letter"].size == 1:
        return ""
    name = str(chosen["pattern"].values[classes.pop()])
    return f": all {NAMES.get(name, name)}"


def _draw_frames(ax: Axes, shape: tuple[int, int], borders: tuple[float, float], *, masked: bool) -> None:
    """Draw a thin frame around each thumbnail, hatched inside where some cells are masked."""
    across, down = borders
    boxes = [
        Rectangle((head - 0.5 + across, layer - 0.5 + down), 1 - 2 * across, 1 - 2 * down)
        for layer, head in np.ndindex(*shape)
    ]
    look: dict[str, Any] = {"facecolor": theme.hidden, "hatch": "//////"} if masked else {"facecolor": "none"}
    ax.add_collection(PatchCollection(boxes, edgecolor=theme.hatch, linewidth=0.6, zorder=0, **look))


def _fit_cells(
    chosen: xr.Dataset, width: float | None, *, largest: float, below: bool
) -> tuple[float, tuple[float, float]]:
    """Return the side of a cell and the size of the figure, in inches; it fits a page."""
    layers, heads, classes = chosen.sizes["layer"], chosen.sizes["head"], "letter" in chosen
    beside = 0.45 if below else 2.55 if classes else 1.3
    around = 0.7 + (0.0 if not below else 1.35 if classes else scales.BELOW)
    limits = theme.PAGE if width is None else (width, max(theme.PAGE[1], 1.3 * width))
    cell = min((limits[0] - beside) / heads, (limits[1] - around) / layers)
    cell = min(cell, largest) if width is None or heads == 1 else cell
    if cell < MIN_CELL:
        raise heatmap.too_narrow(limits[0])
    return cell, (heads * cell + beside if width is None else width, layers * cell + around)


def _most_frequent(data: xr.Dataset, colour: str) -> xr.Dataset:
    """Reduce a variable with an axis of patterns to its largest value, with the index of that pattern as `letter`."""
    if colour not in data or "pattern" not in data[colour].dims or f"{colour}_p" in data:
        return data
    table = data[colour]
    index = table.fillna(-1).argmax("pattern").where(table.notnull().any("pattern"), -1)
    return data.drop_vars(colour).assign({colour: table.max("pattern"), "letter": index})


def _select_variable(data: xr.Dataset, lens: str | None, colour: str) -> xr.Dataset:
    """Return the data of one lens, after checking that it has a value of `colour` for every head."""
    selection.require_variables(data)
    whole = restore_axes(data)
    whole = whole.isel(site=0) if whole.sizes.get("site") == 1 else whole
    known = [str(name) for name, table in whole.data_vars.items() if set(table.dims) == {"lens", "layer", "head"}]
    if colour in head_variables(whole) and colour not in known:
        require_shown_axes("head_grid", select_variable(whole, colour), hint="Draw 'heads', with")
    if colour not in known:
        raise unknown_name("value of every head in this data", colour, known)
    if lens is None:  # the first lens that has the value
        has = whole[colour].notnull().any(("layer", "head")).values
        lens = str(whole["lens"].values[int(has.argmax())])
    return selection.select_lens(whole, lens)


def _first_variable(data: xr.Dataset) -> str | None:
    """Return the variable that colours a Dataset without maps."""
    known = [name for name in head_variables(data) if set(data[name].dims) <= {"lens", "site", "layer", "head"}]
    return known[0] if known else "patterns" if "patterns" in data else None
