"""Lines from each token to the tokens it attends to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from headscope.core.errors import InputError
from headscope.core.figure import Figure
from headscope.plotting import canvas, fonts, heat, pick, theme

PER_LINE = 4  # entries of the legend


@dataclass(frozen=True)
class Arcs(Figure):
    """Queries on the left, keys on the right, and a line for each weight; darker is more.

    Of each query only the largest weights are drawn, until they make up `mass` of its total. Several `heads`
    have a colour each; weights below zero are dashed. `query` shows the lines of one token alone, counted
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
        if not 0 < self.mass <= 1:
            raise InputError(f"mass={self.mass} must be above 0 and at most 1, as a part of each row's weight.")

    @theme.applied()
    def __call__(
        self,
        data: xr.Dataset,
        *,
        ax: Axes | None = None,
        figure: canvases.Figure | canvases.SubFigure | None = None,
    ) -> canvases.Figure:
        """The lines of one or several heads."""
        maps = [pick.one_head(data, self.lens, self.layer, head) for head in _tuple(self.heads)]
        first = maps[0]
        _check_query(first, self.query)
        weights = [kept(np.nan_to_num(pick.cells(one)), self.mass, self.query) for one in maps]
        row, size = _room(first, self.size)
        place = canvas.one_panel("arcs", ax, figure, size)
        row = row if ax is None else canvas.inches(ax)[1] / max(first.sizes["query"], first.sizes["key"])
        largest = max(float(np.abs(each).max()) for each in weights)
        for index, each in enumerate(weights):
            apart = 0.14 * (index - (len(maps) - 1) / 2)  # heads lie side by side, not on one another
            _draw_lines(place, each, largest or 1.0, _palette(len(maps))[index], apart)
        _name_tokens(place, first, row)
        lines = _legend(place, maps, any((each < 0).any() for each in weights))
        default = f"{first['lens'].values} · {', '.join(map(pick.label, maps))}"
        place.set_title(self.title if self.title is not None else default, pad=6 + (14 + 14 * lines if lines else 0))
        canvas.note(place, f"Darkest line: {largest:.2g}. {_caption(self.mass)}", wide=size[0] if ax is None else None)
        return canvas.root(place.figure)


def kept(weights: heat.Cells, mass: float, query: int | None = None) -> heat.Cells:
    """The largest weights of each row, until they make up `mass` of its absolute total; zero elsewhere.

    >>> kept(np.array([[0.5, 0.4, 0.1]]), mass=0.8)
    array([[0.5, 0.4, 0. ]])
    """
    sizes = np.abs(weights)
    order = np.argsort(-sizes, axis=-1, kind="stable")
    ranked = np.take_along_axis(sizes, order, -1)
    before = ranked.cumsum(-1) - ranked
    total = sizes.sum(-1, keepdims=True)
    chosen = np.zeros(weights.shape, bool)
    np.put_along_axis(chosen, order, before < mass * total - 1e-9 * total, -1)
    if query is not None:
        chosen[np.arange(len(weights)) != query] = False
    return np.where(chosen, weights, 0.0)


def _draw_lines(ax: Axes, weights: heat.Cells, largest: float, colours: tuple[str, str], apart: float) -> None:
    """Faint lines first, so that strong ones lie on top; negative ones dashed."""
    for sign, colour, dashes in ((1, colours[0], "solid"), (-1, colours[1], (0, (3, 2)))):
        rows, columns = np.nonzero(weights * sign > 0)
        sizes = np.abs(weights[rows, columns]) / largest
        order = np.argsort(sizes, kind="stable")
        ends = np.stack([0 * rows, rows + apart, 0 * rows + 1, columns + apart], -1).reshape(-1, 2, 2)
        paint = np.tile(to_rgba(colour), (len(order), 1))
        paint[:, 3] = 0.06 + 0.94 * sizes[order]
        lines = LineCollection(list(ends[order]), colors=paint, linestyles=[dashes], capstyle="butt")
        lines.set_linewidth((0.5 + 1.3 * sizes[order]).tolist())
        ax.add_collection(lines)


def _name_tokens(ax: Axes, one: xr.Dataset, row: float) -> None:
    """Query tokens on the left, key tokens on the right."""
    tall = max(one.sizes["query"], one.sizes["key"])
    ax.set(xlim=(0, 1), ylim=(tall - 0.5, -0.5), xticks=[])
    ax.spines[:].set_visible(False)
    heat.name_tokens(ax.yaxis, one, "query", row)
    right = ax.secondary_yaxis("right")
    right.spines[:].set_visible(False)
    heat.name_tokens(right.yaxis, one, "key", row)
    for x, side, where in ((0, "right", "query"), (1, "left", "key")):
        ax.text(
            x,
            1.0,
            where,
            transform=ax.transAxes,
            ha=side,
            va="bottom",
            color=theme.quiet,
            fontsize=theme.NOTE,
        )


def _legend(ax: Axes, maps: list[xr.Dataset], negative: bool) -> int:
    """Which colour is which head, and that dashes are negative; gives back how many lines that takes."""
    handles = []
    palette = _palette(len(maps))
    if len(maps) > 1:
        handles = [
            Line2D([], [], color=colours[0], label=f"H{int(one['head'])}")
            for one, colours in zip(maps, palette, strict=False)
        ]
    if negative:
        colour = palette[0][1] if len(maps) == 1 else theme.quiet
        handles.append(Line2D([], [], color=colour, linestyle=(0, (3, 2)), label="below zero"))
    if handles:
        spacing = {"borderaxespad": 1.6, "handlelength": 1.4, "columnspacing": 1.2}
        ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=PER_LINE, **spacing)
    return -(-len(handles) // PER_LINE)


def _palette(many: int) -> list[tuple[str, str]]:
    """The colours of positive and negative weights, for each head."""
    return [(theme.positive, theme.negative)] if many == 1 else [(colour, colour) for colour in theme.heads]


def _caption(mass: float) -> str:
    if mass == 1:
        return "Every weight is drawn."
    return f"Of each query the largest weights are drawn, up to {mass:.0%} of its total."


def _room(one: xr.Dataset, size: float | None) -> tuple[float, tuple[float, float]]:
    """The height of a row, and the size of the figure, in inches."""
    tall = max(one.sizes["query"], one.sizes["key"])
    row = min(max(4.2 / tall, 0.135), 0.24, 24.0 / tall)
    points = max(heat.SMALLEST_TYPE, min(heat.LARGEST_TYPE, row * heat.PER_CELL))
    labels = sum(fonts.width(pick.tokens(one, side)) for side in ("query", "key")) * points
    return row, (size if size is not None else 2.6 + labels, row * tall + 1.2)


def _tuple(heads: tuple[int, ...] | int | None) -> tuple[int | None, ...]:
    """The heads asked for, or the first."""
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


def _check_query(one: xr.Dataset, query: int | None) -> None:
    many: Any = one.sizes["query"]
    if query is not None and not 0 <= query < many:
        raise InputError(f"There is no query {query}: this text has {many} query tokens, 0 to {many - 1}.")
