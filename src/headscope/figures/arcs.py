"""Lines from each token to the tokens it attends to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, fonts, heatmap, scales, selection, theme

PER_LINE = 4  # legend entries


@dataclass(frozen=True)
class Arcs(Figure):
    """Queries on the left, keys on the right, and a line for each weight; darker is more.

    For each query only the largest weights are drawn, up to a share `mass` of its total. Each of several `heads`
    has its own colour; negative weights are dashed. `query` draws the lines of one token only, counted
    from 0. `size` is the width in inches.
    """

    layer: int | None = None
    heads: tuple[int, ...] | int | None = None
    lens: str | None = None
    mass: float = 0.8
    query: int | None = None
    title: str | None = None
    size: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.mass <= 1:
            raise InputError(f"mass={self.mass} must be above 0 and at most 1, as a share of each row's weight.")

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the lines of one or several heads."""
        maps = [selection.select_head(data, self.lens, self.layer, head) for head in _check_heads(self.heads)]
        first = maps[0]
        selection.check_query(first, self.query)
        weights = [
            select_mass(np.nan_to_num(selection.visible_weights(head_map)), self.mass, self.query) for head_map in maps
        ]
        rows = max(first.sizes["query"], first.sizes["key"])
        row, size = _fit_rows(first, rows, self.size)
        ax = target.open_axes(*size)
        width = size[0]
        if not target.is_new:
            width, row = canvas.axes_size(ax)[0], canvas.axes_size(ax)[1] / rows
        largest = max(float(np.abs(head_weights).max()) for head_weights in weights)
        for index, head_weights in enumerate(weights):
            shift = 0.14 * (index - (len(maps) - 1) / 2)  # lines of several heads do not overlap
            _draw_lines(ax, head_weights, largest or 1.0, _palette(len(maps))[index], shift)
        font = heatmap.fit_label_size(row, _label_widths(first), width)
        step = _label_tokens(ax, first, rows, row, font)
        lines = _add_legend(ax, maps, any((head_weights < 0).any() for head_weights in weights))
        default = f"{first['lens'].values} · {', '.join(map(selection.head_label, maps))}"
        line = 1.75 * theme.text_size("note")
        title = self.title if self.title is not None else default
        canvas.set_title(ax, title, max(1.6, width - 0.6), pad=6 + (line * (1 + lines) if lines else 0))
        drawn = f"Of each query the largest weights are drawn, up to {100 * self.mass:.0f} % of its total."
        note = f"Darkest line: {largest:.2g}. {drawn if self.mass < 1 else 'Every weight is drawn.'}"
        note += f" Tokens: {heatmap.describe_step(step)}." if step > 1 else ""
        canvas.add_note(ax, note, width=width - 0.2)


def select_mass(weights: scales.Cells, mass: float, query: int | None = None) -> scales.Cells:
    """Keep the largest weights of each row, up to a share `mass` of its absolute total; set the others to 0.

    >>> select_mass(np.array([[0.5, 0.4, 0.1]]), mass=0.8)
    array([[0.5, 0.4, 0. ]])
    """
    sizes = np.abs(weights)
    order = np.argsort(-sizes, axis=-1, kind="stable")
    ranked = np.take_along_axis(sizes, order, -1)
    before = ranked.cumsum(-1) - ranked
    total = sizes.sum(-1, keepdims=True)
    selected = np.zeros(weights.shape, bool)
    np.put_along_axis(selected, order, before < mass * total - 1e-9 * total, -1)
    if query is not None:
        selected[np.arange(len(weights)) != query] = False
    return np.where(selected, weights, 0.0)


def _draw_lines(ax: Axes, weights: scales.Cells, largest: float, colours: tuple[str, str], shift: float) -> None:
    """Draw faint lines first, so that strong ones are on top; negative ones are dashed."""
    for sign, colour, dashes in ((1, colours[0], "solid"), (-1, colours[1], (0, (3, 2)))):
        rows, columns = np.nonzero(weights * sign > 0)
        sizes = np.abs(weights[rows, columns]) / largest
        order = np.argsort(sizes, kind="stable")
        ends = np.stack([0 * rows, rows + shift, 0 * rows + 1, columns + shift], -1).reshape(-1, 2, 2)
        paint = np.tile(to_rgba(colour), (len(order), 1))
        paint[:, 3] = 0.06 + 0.94 * sizes[order]
        lines = LineCollection(list(ends[order]), colors=paint, linestyles=[dashes], capstyle="butt")
        lines.set_linewidth((0.5 + 1.3 * sizes[order]).tolist())
        ax.add_collection(lines)


def _label_tokens(ax: Axes, head_map: xr.Dataset, rows: int, row: float, font: float) -> int:
    """Label query tokens on the left and key tokens on the right, every n-th where not all fit; return n."""
    ax.set(xlim=(0, 1), ylim=(rows - 0.5, -0.5), xticks=[])
    ax.spines[:].set_visible(False)
    step = heatmap.label_tokens(ax.yaxis, head_map, "query", row, size=font)
    right = ax.secondary_yaxis("right")
    right.spines[:].set_visible(False)
    heatmap.label_tokens(right.yaxis, head_map, "key", row, size=font)
    for x, align, side in ((0, "right", "query"), (1, "left", "key")):
        look: dict[str, Any] = {"ha": align, "va": "bottom", "color": theme.quiet, "fontsize": theme.text_size("note")}
        ax.text(x, 1.0, side, transform=ax.transAxes, **look)
    return step


def _add_legend(ax: Axes, maps: list[xr.Dataset], negative: bool) -> int:
    """Add a legend of heads and of dashed lines, and return its number of lines."""
    handles = []
    palette = _palette(len(maps))
    if len(maps) > 1:
        handles = [
            Line2D([], [], color=colours[0], label=f"H{int(head_map['head'])}")
            for head_map, colours in zip(maps, palette, strict=False)
        ]
    if negative:
        colour = palette[0][1] if len(maps) == 1 else theme.quiet
        handles.append(Line2D([], [], color=colour, linestyle=(0, (3, 2)), label="below zero"))
    if handles:
        spacing = {"borderaxespad": 1.6, "handlelength": 1.4, "columnspacing": 1.2}
        ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=PER_LINE, **spacing)
    return -(-len(handles) // PER_LINE)


def _palette(heads: int) -> list[tuple[str, str]]:
    """Return the colours of positive and negative weights, for each head."""
    return [(theme.positive, theme.negative)] if heads == 1 else [(colour, colour) for colour in theme.heads]


def _fit_rows(head_map: xr.Dataset, rows: int, width: float | None) -> tuple[float, tuple[float, float]]:
    """Return the height of a row and the size of the figure, in inches."""
    row = heatmap.fit_rows(rows, 0.24, around=1.4)
    natural = min(theme.PAGE[0], 2.6 + _label_widths(head_map) * heatmap.font_size(row))
    return row, (width if width is not None else natural, row * rows + 1.4)


def _label_widths(head_map: xr.Dataset) -> float:
    """Return the width of the tokens on both sides, in inches per point of font size."""
    return sum(fonts.label_width(selection.token_texts(head_map, side)) for side in ("query", "key"))


def _check_heads(heads: tuple[int, ...] | int | None) -> tuple[int | None, ...]:
    """Return the requested heads (default: the first), if they are not too many."""
    if not isinstance(heads, tuple):
        return (heads,)
    if not heads:
        raise InputError("heads=() asks for no head at all. Leave it out to get the first.")
    if len(heads) > len(theme.heads):
        raise InputError(
            f"heads asks for {len(heads)} heads, but only {len(theme.heads)} colours can be told apart. "
            "Give fewer, or draw 'head_grid'."
        )
    return heads
