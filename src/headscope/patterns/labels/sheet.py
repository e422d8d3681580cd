"""Sheets of large maps, six on a page, to be looked at and labelled."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib import figure as canvases
from matplotlib.axes import Axes

from headscope.patterns.labels.labelled import Array, PatternMap
from headscope.plotting import theme
from headscope.results.atomic import atomic_path

ROWS, COLUMNS = 2, 3
WIDE, HIGH, DOTS = 15.0, 10.4, 100
TOP = 0.995  # of the cells; those above are black
CONTRAST = 9  # black is at least so many times an even share, so that a nearly even map looks even
FULL = 0.5  # of a row's weight fills a bar's whole height
REACH = 5
SPECIAL = ("[CLS]", "[SEP]", "<s>", "</s>")


def sheets(maps: Sequence[PatternMap], folder: str | Path) -> Iterator[Path]:
    """Write every sheet as a picture, and say which."""
    many = ROWS * COLUMNS
    for place, start in enumerate(range(0, len(maps), many)):
        path = Path(folder) / f"sheet-{place + 1:03}.png"
        drawn = sheet(maps[start : start + many])
        with atomic_path(path) as part:
            drawn.savefig(part, format="png", dpi=DOTS)
        yield path


@theme.apply()
def sheet(maps: Sequence[PatternMap]) -> canvases.Figure:
    """Up to six maps, each with its id and nothing that tells its model, lens, layer or head."""
    page = canvases.Figure(figsize=(WIDE, HIGH))
    grid = page.add_gridspec(ROWS, COLUMNS, left=0.04, right=0.99, bottom=0.05, top=0.96, wspace=0.16, hspace=0.24)
    for place, each in enumerate(maps):
        cell = grid[divmod(place, COLUMNS)].subgridspec(
            2, 2, width_ratios=(6, 1), height_ratios=(1, 6), wspace=0.04, hspace=0.04
        )
        top, main, side = (page.add_subplot(cell[at]) for at in ((0, 0), (1, 0), (1, 1)))
        draw_map(each, main)
        draw_margins(each, top, side)
    return page


def draw_map(each: PatternMap, ax: Axes) -> None:
    """One map, darker for more: the share of each row's |weight|, by its square root, so that faint shapes show too."""
    ax.imshow(blackness(each.weights), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    marks = [place for place, token in enumerate(each.source.tokens) if token in SPECIAL]
    names = [each.source.tokens[place] for place in marks]
    ax.set_xticks(marks, names, rotation=90, fontsize=8)
    ax.set_yticks(marks, names, fontsize=8)


def draw_margins(each: PatternMap, top: Axes, side: Axes) -> None:
    """Above the map the mean share of each key, and beside it that of each distance between key and query."""
    shares = row_shares(each.weights)
    n = len(shares)
    top.bar(range(n), shares.mean(0), width=1.0, color=theme.ink)
    top.set(xlim=(-0.5, n - 0.5), ylim=(0, FULL), xticks=[], yticks=[])
    kind = "pair" if any(each.source.segments) else "single text"
    top.set_title(f"{each.source.id}   {n} tokens, {kind}", fontsize=12)
    offsets = range(-REACH, REACH + 1)
    side.barh(offsets, [np.trace(shares, offset) / n for offset in offsets], height=0.9, color=theme.ink)
    side.set(xlim=(0, FULL), ylim=(REACH + 0.5, -REACH - 0.5), xticks=[], yticks=[-3, 0, 3])
    side.tick_params(labelsize=7, left=False, right=True, labelleft=False, labelright=True)
    for ax in (top, side):
        ax.spines[:].set_color(theme.faint)


def blackness(weights: Array) -> Array:
    """How dark each cell is, from 0 to 1 and beyond."""
    shown = np.sqrt(row_shares(weights))
    black: Array = shown / max(float(np.quantile(shown, TOP)), np.sqrt(CONTRAST / len(shown)))
    return black


def row_shares(weights: Array) -> Array:
    """|w| / Σ|w| of every row; a row without weight stays empty."""
    sizes = np.abs(weights)
    whole = sizes.sum(-1, keepdims=True)
    return sizes / np.where(whole > 0, whole, 1.0)
