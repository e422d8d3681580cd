"""How far each weight of one row could move without changing the output."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, StrMethodFormatter

from headscope.core.errors import InputError
from headscope.core.figure import Figure
from headscope.core.spec import check_choices
from headscope.plotting import canvas, fonts, heat, pick, theme
from headscope.results.stamp import read_provenance

PLOT = 4.4  # inches of weights, beside the tokens
TALL = 20  # keys, above which the numbers stand at both ends
CERTAIN = 1e-6  # an interval narrower than this share of the row is a point


@dataclass(frozen=True)
class Identifiability(Figure):
    """A bar per key from the least to the greatest weight with the same output; the model's own weight in it.

    It draws what `hs.identifiability` gives. Effective weights are marked too: they are not bound to be
    probabilities, so they may lie outside the bar. The axis follows the square root of the weights, so that small ones
    can be seen beside large ones; `scale="linear"` does not. `size` is the width in inches.
    """

    scale: heat.Spacing = "root"
    title: str | None = None
    size: float | None = None

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
        """The intervals of one row."""
        pick.need(data, "standard", "effective", "least", "greatest")
        row, size = _room(data, self.size)
        place = canvas.one_panel("identifiability", ax, figure, size)
        row = row if ax is None else canvas.inches(ax)[1] / data.sizes["key"]
        _draw_intervals(place, data, row)
        _name_keys(place, data, row)
        _set_scale(place, self.scale)
        _legend(place, _above(data))
        place.set_title(self.title if self.title is not None else _title(data), pad=26 + _above(data))
        unit = "weight (square-root scale)" if self.scale == "root" else "weight"
        place.set_xlabel(f"{unit}\n{canvas.wrapped(_caption(data), size[0] * 0.8, theme.NOTE)}", fontsize=theme.NOTE)
        return canvas.root(place.figure)


def _draw_intervals(ax: Axes, data: xr.Dataset, row: float) -> None:
    """Bars, and over them a dot for the standard weight in an open diamond for the effective one."""
    places = np.arange(data.sizes["key"])
    least, greatest = data["least"].values, data["greatest"].values
    dot = min(4.5, row * 72 * 0.36)  # points
    ax.axvline(0, color=theme.quiet, linewidth=0.6, zorder=1)
    ax.barh(places, greatest - least, left=least, height=0.62, color=BAR, edgecolor=EDGE, linewidth=0.5, zorder=2)
    ax.plot(data["effective"].values, places, **{**EFFECTIVE, "markersize": 1.45 * dot}, zorder=3)
    ax.plot(data["standard"].values, places, **{**STANDARD, "markersize": dot}, zorder=4)


BAR, EDGE = "#c3d9ee", "#6f9cc7"
STANDARD: dict[str, Any] = {"marker": "o", "linestyle": "none", "color": theme.ink, "markeredgewidth": 0.0}
EFFECTIVE: dict[str, Any] = {
    "marker": "D",
    "linestyle": "none",
    "markerfacecolor": "none",
    "markeredgecolor": theme.negative,
    "markeredgewidth": 0.9,
}


def _name_keys(ax: Axes, data: xr.Dataset, row: float) -> None:
    """Tokens down the side in the order of the text; numbers above and below, for long texts need both."""
    many = data.sizes["key"]
    ax.set_ylim(many - 0.4, -0.6)
    heat.name_tokens(ax.yaxis, data, "key", row)
    ax.set_ylabel("key: attended to", color=theme.quiet)
    tall = many > TALL
    ax.tick_params(axis="x", labelsize=theme.NOTE, width=0.5, length=2.5, labeltop=tall, top=tall)
    ax.grid(axis="x", color=theme.faint, linewidth=0.4)
    for place in np.arange(4.5, many - 1, 5):
        ax.axhline(place, color=theme.faint, linewidth=0.4, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["right", "top"]].set_visible(False)


def _set_scale(ax: Axes, scale: heat.Spacing) -> None:
    """The axis of weights, with a little room beyond the outermost marks."""
    ends = np.array([float(end) for end in ax.dataLim.intervalx])
    if scale == "root":
        ax.set_xscale("function", functions=(_root, _square))
        ends = _root(ends)
    beyond = 0.04 * (float(np.ptp(ends)) or 1.0)
    ends += [-beyond, beyond]
    if scale == "root":
        ax.xaxis.set_major_locator(FixedLocator(_ticks(ends)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ends = _square(ends)
    ax.set_xlim(*ends)


def _root(numbers: heat.Cells) -> heat.Cells:
    return np.sign(numbers) * np.sqrt(np.abs(numbers))


def _square(numbers: heat.Cells) -> heat.Cells:
    return np.sign(numbers) * np.square(numbers)


def _ticks(ends: heat.Cells) -> list[float]:
    """Zero and round numbers, each well apart from the last where roots are drawn."""
    sizes = [digit * 10.0**power for power in range(-7, 3) for digit in (1, 2, 5)]
    chosen, apart = [0.0], 0.1 * float(np.ptp(ends))
    for sign in (1, -1):
        last = 0.0
        for size in sizes:
            place = size**0.5
            if place - last >= apart and ends[0] <= sign * place <= ends[1]:
                chosen.append(sign * size)
                last = place
    return sorted(chosen)


def _above(data: xr.Dataset) -> float:
    """Points that the upper row of numbers takes."""
    return 13.0 if data.sizes["key"] > TALL else 0.0


def _legend(ax: Axes, above: float) -> None:
    """What the marks are, above the numbers."""
    handles = [
        Patch(facecolor=BAR, edgecolor=EDGE, linewidth=0.5, label="range with this output"),
        Line2D([], [], **STANDARD, markersize=4.5, label="standard"),
        Line2D([], [], **EFFECTIVE, markersize=6.0, label="effective"),
    ]
    spacing = {"borderaxespad": 0.3 + above / theme.NOTE, "handlelength": 1.2, "columnspacing": 1.2}
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, **spacing)


def _title(data: xr.Dataset) -> str:
    facts = read_provenance(data)
    if "layer" not in facts:
        return "identifiability"
    token = fonts.shown(str(facts["query_token"]))
    return f"identifiability · L{facts['layer']}H{facts['head']} · query {facts['query']}: {token}"


def _caption(data: xr.Dataset) -> str:
    """What the intervals say, in words; one sentence where there is only one row."""
    width = (data["greatest"] - data["least"]).values
    total = float(data["standard"].sum()) or 1.0
    facts = read_provenance(data)
    known = f"{facts['n']} keys, values of rank {facts['rank']}. " if "rank" in facts else ""
    if width.max() <= CERTAIN * total:
        return f"{known}No other row of weights has this output: every weight is determined."
    free = int((width > data["standard"].values).sum())
    return f"{known}For {free} of {len(width)} keys the interval is wider than the weight itself."


def _room(data: xr.Dataset, size: float | None) -> tuple[float, tuple[float, float]]:
    """The height of a row, and the size of the figure, in inches."""
    many = data.sizes["key"]
    row = min(max(4.2 / many, 0.135), 0.26, 24.0 / many)
    points = max(heat.SMALLEST_TYPE, min(heat.LARGEST_TYPE, row * heat.PER_CELL))
    wide = fonts.width(pick.tokens(data, "key")) * points + PLOT + 0.6
    if size is not None and size < wide - PLOT + 0.5:
        raise InputError(f"A figure {size} inches wide has no room beside its labels. Give a larger size.")
    return row, (size if size is not None else wide, row * many + 1.5)
