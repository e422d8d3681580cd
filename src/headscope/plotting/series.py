"""Lines, bars and dots of several lenses, distinct in colour and in grey print."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from headscope.core.errors import InputError
from headscope.core.estimate import Estimate
from headscope.core.figure import Target
from headscope.plotting import canvas, fonts, theme

EstimateKind = Literal["points", "line", "band", "bars"]

COLUMN_WIDTH = 3.4
"""The width of one column of a paper, in inches."""


@dataclass(frozen=True)
class SeriesStyle:
    """Colour, line, marker and hatch of one series."""

    colour: str
    fill: float  # share of the colour in a filled area; the rest is white
    line: Any
    mark: str
    hatch: str

    @property
    def area(self) -> dict[str, Any]:
        """Options of a filled area; draw it in a `use_hatch_colour` block."""
        shade = [self.fill * part + 1 - self.fill for part in to_rgb(self.colour)]
        return {"facecolor": tuple(shade), "edgecolor": self.colour, "hatch": self.hatch}


STYLES = (
    SeriesStyle("#0072b2", 0.6, "solid", "o", ""),
    SeriesStyle("#e69f00", 0.25, (0, (4, 1.5)), "s", "//////"),
    SeriesStyle("#1a1a1a", 0.6, (0, (1, 1)), "^", "....."),
    SeriesStyle("#d55e00", 0.3, (0, (5, 1, 1, 1)), "D", "\\\\\\\\\\\\"),
    SeriesStyle("#56b4e9", 0.4, (0, (8, 2)), "v", "xxxxx"),
    SeriesStyle("#009e73", 0.75, (0, (3, 1, 1, 1, 1, 1)), "P", "------"),
    SeriesStyle("#cc79a7", 0.4, (0, (2, 2)), "X", "+++++"),
)
"""Colours of Okabe & Ito; neighbours differ in grey print too."""


def styles(labels: Any, what: str) -> list[SeriesStyle]:
    """Return a style for each label; raise InputError where there are too many to tell apart."""
    if len(labels) > len(STYLES):
        raise InputError(
            f"There are {len(labels)} {what}, but only {len(STYLES)} can be told apart in one figure. Choose some of "
            "them."
        )
    return list(STYLES[: len(labels)])


def use_hatch_colour(area: dict[str, Any]) -> AbstractContextManager[None]:
    """Draw hatches in the colour of the area's edge in this block."""
    return matplotlib.rc_context({"hatch.color": area["edgecolor"]})


def legend_patches(areas: Sequence[dict[str, Any]], labels: Any) -> list[Patch]:
    """Return a patch of each area for a legend."""
    patches = []
    for area, label in zip(areas, labels, strict=True):
        with use_hatch_colour(area):
            patches.append(Patch(label=str(label), **area))
    return patches


def lens_patches(lenses: Any) -> list[Patch]:
    """Return a patch for each lens, filled in its style."""
    return legend_patches([style.area for style in styles(lenses, "lenses")], lenses)


def fit_legend(labels: Any, width: float) -> tuple[int, int]:
    """Return the columns and the lines of a legend of `width` inches; a single label needs none."""
    columns = max(
        1, min(len(labels), int(width / (fonts.label_width(map(str, labels)) * theme.text_size("note") + 0.42)))
    )
    return columns, -(-len(labels) // columns) if len(labels) > 1 else 0


def open_axes(target: Target, lenses: Any, size: float | None, content: float) -> tuple[Axes, float]:
    """Return axes with height for a legend of lenses, and the width in inches that texts may take.

    A new figure is `size` inches wide, or as wide as its content, between one and two columns of a paper.
    """
    width = size if size is not None else min(theme.PAGE[0], max(COLUMN_WIDTH, content))
    ax = target.open_axes(width, 2.7 + 0.18 * fit_legend(lenses, width - 0.7)[1])
    return ax, width if target.is_new else canvas.axes_size(ax)[0]


def label_series(ax: Axes, handles: Sequence[Artist], width: float, *, title: str, x: str, y: str, note: str) -> None:
    """Add the title, a legend if there are several handles, and the labels of x and y, with the note below x."""
    columns, lines = fit_legend([handle.get_label() for handle in handles], width - 0.7)
    if lines:
        spacing = {"borderaxespad": 0.2, "borderpad": 0.2, "columnspacing": 1.0}
        marks = {"handlelength": 1.8, "handletextpad": 0.5}
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, **spacing, **marks)
    size = theme.text_size("note")
    canvas.set_title(ax, title, width - 0.7, loc="left", pad=5 + 1.65 * size * lines)
    ax.set_ylabel(canvas.wrap_text(y, 2.0, theme.text_size("label")))
    note = canvas.wrap_text(note, width - 0.75, size)
    ax.set_xlabel(f"{x}\n{note}", fontsize=size, color=theme.quiet)


def draw_estimates(
    ax: Axes,
    estimate: Estimate,
    at: Any,
    style: SeriesStyle,
    *,
    kind: EstimateKind = "points",
    along: Literal["x", "y"] = "y",
    filled: Any = True,
    size: int | float = 4,
    width: int | float = 0.8,
    label: str | None = None,
) -> Any:
    """Draw values with their intervals, where these are known; return what a legend shows of them.

    Parameters
    ----------
    ax
        The axes to draw into.
    estimate
        The values along one dimension, or a single value.
    at
        Their places on the other axis.
    style
        The colour, line, marker and hatch of the series.
    kind
        points, points joined by a line, a line with a band, or bars with a dash where a value is missing.
    along
        The axis of the values; lines and bars are along y.
    filled
        Whether each point is filled; those that are not, such as those that are not significant, are hollow.
    size
        The size of points.
    width
        The width of bars, with the space between them.
    label
        The name of the series in a legend.
    """
    value = np.ravel(estimate.value.values.astype(float))
    at = np.broadcast_to(np.asarray(at, dtype=float), value.shape)
    margins = estimate.margins.reshape(2, -1) if estimate.has_interval else None
    if kind == "bars":
        return _draw_bars(ax, value, margins, at, style, width)
    x, y = (value, at) if along == "x" else (at, value)
    look: dict[str, Any] = {"color": style.colour, "marker": style.mark, "markersize": size, "zorder": 3}
    look |= {"linestyle": "none" if kind == "points" else style.line, "linewidth": 1.3}
    drawn: Any
    if kind == "band" or margins is None:
        if estimate.low is not None and estimate.high is not None:
            _draw_band(ax, at, [np.ravel(end.values) for end in (estimate.low, estimate.high)], style.colour)
        (drawn,) = ax.plot(x, y, label=label, **look)
    else:
        bars: dict[str, Any] = {f"{along}err": margins, "elinewidth": 0.9}
        drawn = ax.errorbar(x, y, label=label, **bars, **look)
    hollow = ~np.broadcast_to(filled, value.shape)
    if hollow.any():
        ax.plot(x[hollow], y[hollow], markerfacecolor="#ffffff", **look | {"linestyle": "none", "zorder": 4})
    return drawn


def _draw_bars(ax: Axes, value: Any, margins: Any, at: Any, style: SeriesStyle, width: float) -> Any:
    with use_hatch_colour(style.area):
        drawn = ax.bar(at, value, width=0.92 * width, linewidth=0.7, zorder=2, **style.area)
    if margins is not None:
        ax.errorbar(at, value, yerr=margins, fmt="none", ecolor=theme.ink, elinewidth=0.8, zorder=3)
    for place in at[np.isnan(value)]:
        ax.text(place, 0, "–", ha="center", va="bottom", fontsize=theme.text_size("note"), color=theme.quiet)
    return drawn


def _draw_band(ax: Axes, at: Any, ends: Any, colour: str) -> None:
    ax.fill_between(at, *ends, color=colour, alpha=0.2, linewidth=0, zorder=2)
    if len(at) == 1:
        ax.vlines(at, *ends, color=colour, linewidth=3, alpha=0.4, zorder=2)


def spread_series(count: int, apart: float) -> Any:
    """Return how far each of `count` series is from the middle of a group, if neighbours are `apart`."""
    return apart * (np.arange(count) - (count - 1) / 2)


def style_axes(ax: Axes, axis: Literal["x", "y", "both"] = "y") -> None:
    """Draw thin guide lines along one axis, and no box."""
    ax.grid(axis=axis, color=theme.faint, linewidth=0.4)
    ax.set_axisbelow(True)
    ax.spines[["right", "top"]].set_visible(False)
    ax.tick_params(labelsize=theme.text_size("note"), width=0.5, length=2.5)


def label_groups(ax: Axes, labels: Sequence[str], width: float) -> None:
    """Label groups that are `width` inches wide: long labels are slanted, short ones skipped where they overlap."""
    texts = [fonts.to_label(label) for label in labels]
    longest, short = fonts.label_width(texts) * theme.text_size("note"), max(map(len, texts)) <= 3
    slanted = longest > width * 0.95 and not short
    step = max(1, int(np.ceil((0.15 if slanted else longest + 0.04 if short else 0) / width)))
    turn: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    ax.set_xticks(
        range(0, len(texts), step), labels=texts[::step], fontsize=theme.text_size("note"), parse_math=False, **turn
    )
    ax.tick_params(axis="x", length=0)
    middle, half = (len(texts) - 1) / 2, max(len(texts), 3) / 2 + 0.1  # a single bar does not fill the figure
    ax.set_xlim(middle - half, middle + half)


def axis_labels(axis: str, labels: Any) -> list[str]:
    """Return the labels of an axis as text; layers and heads as L3 and H7."""
    letter = {"layer": "L", "head": "H", "other_layer": "L", "other_head": "H"}.get(axis, "")
    return [f"{letter}{label}" for label in labels]
