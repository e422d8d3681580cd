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
    filled: Any = True,
    size: int | float = 16,
    along: Literal["x", "y"] = "x",
    label: str | None = None,
) -> None:
    """Draw points with their intervals; `at` are their places on the other axis.

    Points that are not `filled`, such as those that are not significant, are hollow.
    """
    value = np.ravel(estimate.value.values.astype(float))
    at, filled = np.asarray(at, dtype=float), np.broadcast_to(filled, value.shape)
    x, y = (value, at) if along == "x" else (at, value)
    margins = estimate.margins.reshape(2, -1)
    bars: Any = {f"{along}err": margins} if estimate.has_interval else {}
    ax.errorbar(x, y, fmt="none", ecolor=style.colour, elinewidth=0.9, zorder=2, **bars)
    look: Any = {"s": size, "marker": style.mark, "edgecolor": style.colour, "linewidth": 0.9, "zorder": 3}
    for marked, face in ((filled, style.colour), (~filled, "white")):
        ax.scatter(x[marked], y[marked], facecolor=face, label=label if face != "white" else None, **look)


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
