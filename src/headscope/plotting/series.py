"""Lines, bars and dots of several lenses: told apart by colour, and without colour too."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from headscope.core.errors import InputError
from headscope.plotting import canvas, fonts, theme

COLUMN = 3.4
"""The width of one column of a paper, in inches."""


@dataclass(frozen=True)
class Style:
    """How one of several things is drawn."""

    colour: str
    fill: float  # how much of the colour a filled area has; the rest is white
    line: Any
    mark: str
    hatch: str

    @property
    def area(self) -> dict[str, Any]:
        """How a filled area looks; to be drawn under `hatched`."""
        shade = [self.fill * each + 1 - self.fill for each in to_rgb(self.colour)]
        return {"facecolor": tuple(shade), "edgecolor": self.colour, "hatch": self.hatch}


STYLES = (
    Style("#0072b2", 0.6, "solid", "o", ""),
    Style("#e69f00", 0.25, (0, (4, 1.5)), "s", "//////"),
    Style("#1a1a1a", 0.6, (0, (1, 1)), "^", "....."),
    Style("#d55e00", 0.3, (0, (5, 1, 1, 1)), "D", "\\\\\\\\\\\\"),
    Style("#56b4e9", 0.4, (0, (8, 2)), "v", "xxxxx"),
    Style("#009e73", 0.75, (0, (3, 1, 1, 1, 1, 1)), "P", "------"),
    Style("#cc79a7", 0.4, (0, (2, 2)), "X", "+++++"),
)
"""After Okabe & Ito, neighbours apart in grey too."""


def styles(labels: Any, what: str) -> list[Style]:
    """A style for each label; too many could not be told apart."""
    if len(labels) > len(STYLES):
        raise InputError(
            f"There are {len(labels)} {what}, but only {len(STYLES)} can be told apart in one figure. Choose some of "
            "them."
        )
    return list(STYLES[: len(labels)])


def hatched(area: dict[str, Any]) -> AbstractContextManager[None]:
    """Hatches in the colour of the edge for as long as this lasts."""
    return matplotlib.rc_context({"hatch.color": area["edgecolor"]})


def patches(areas: Sequence[dict[str, Any]], labels: Any) -> list[Patch]:
    """A small area of each kind, for a legend."""
    found = []
    for area, label in zip(areas, labels, strict=True):
        with hatched(area):
            found.append(Patch(label=str(label), **area))
    return found


def legend_lines(labels: Any, wide: float) -> int:
    """How many lines of `wide` inches a legend of these labels takes."""
    return -(-len(labels) // _columns(labels, wide))


def legend(ax: Axes, handles: Sequence[Artist], wide: float) -> int:
    """What is what, above the axes, in lines of `wide` inches; gives back how many."""
    labels = [str(each.get_label()) for each in handles]
    spacing = {"borderaxespad": 0.2, "handlelength": 1.8, "columnspacing": 1.0, "handletextpad": 0.5, "borderpad": 0.2}
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=_columns(labels, wide), **spacing)
    return legend_lines(labels, wide)


def _columns(labels: Any, wide: float) -> int:
    return max(1, min(len(labels), int(wide / (fonts.width(map(str, labels)) * theme.NOTE + 0.42))))


def title(ax: Axes, text: str, wide: float, lines: int) -> None:
    """A title above the legend's lines."""
    ax.set_title(canvas.wrapped(text, wide, theme.TITLE), loc="left", pad=5 + 13 * lines)


def note(ax: Axes, axis: str, text: str, wide: float) -> None:
    """The name of the axis below it, and a sentence on what is shown."""
    words = canvas.wrapped(text, wide - 0.75, theme.NOTE)
    ax.set_xlabel(f"{axis}\n{words}", fontsize=theme.NOTE, color=theme.quiet)


def height(means: xr.Dataset, wide: float) -> float:
    """Inches for the axes, their labels, and a legend of lenses."""
    return 2.7 + (0.18 * legend_lines(means["lens"].values, wide - 0.7) if means.sizes["lens"] > 1 else 0)


def plain(ax: Axes, axis: Literal["x", "y", "both"] = "y") -> None:
    """Thin guide lines along one axis, and no box."""
    ax.grid(axis=axis, color=theme.faint, linewidth=0.4)
    ax.set_axisbelow(True)
    ax.spines[["right", "top"]].set_visible(False)
    ax.tick_params(labelsize=theme.NOTE, width=0.5, length=2.5)


def name_groups(ax: Axes, labels: Sequence[str], room: float) -> None:
    """Labels below groups of `room` inches: words slanted where they are wider than that, short ones left out."""
    shown = [fonts.shown(each) for each in labels]
    wide, short = fonts.width(shown) * theme.NOTE, max(map(len, shown)) <= 3
    slanted = wide > room * 0.95 and not short
    step = max(1, int(np.ceil((0.15 if slanted else wide + 0.04 if short else 0) / room)))
    turn: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    ax.set_xticks(range(0, len(shown), step), labels=shown[::step], fontsize=theme.NOTE, parse_math=False, **turn)
    ax.tick_params(axis="x", length=0)
    middle, half = (len(shown) - 1) / 2, max(len(shown), 3) / 2 + 0.1  # one bar alone is not as wide as the figure
    ax.set_xlim(middle - half, middle + half)


def named(axis: str, labels: Any) -> list[str]:
    """The labels of an axis as text; layers and heads as L3 and H7."""
    letter = {"layer": "L", "head": "H", "other_layer": "L", "other_head": "H"}.get(axis, "")
    return [f"{letter}{each}" for each in labels]
