"""Maps drawn for labelling: sheets of six as PNG files, and single maps in a terminal."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from rich.style import Style
from rich.text import Text

from headscope.plotting import theme
from headscope.results.atomic import atomic_path
from headscope_patterns.labels.labelled_maps import Array, PatternMap

ROWS, COLUMNS = 2, 3
WIDTH, HEIGHT, DPI = 15.0, 10.4, 100
BLACK_QUANTILE = 0.995  # cells above this quantile are black
CONTRAST = 9  # black is at least this many times the uniform weight, so that a nearly uniform map looks uniform
BAR_MAX = 0.5  # share of the weight that fills a bar's whole height
MAX_OFFSET = 5
SPECIAL = {"[CLS]": "[CLS]", "[SEP]": "[SEP]", "<s>": "[CLS]", "</s>": "[SEP]"}
"""How special tokens are written, whatever the model calls them, so that a sheet does not tell the model."""


def save_sheets(maps: Sequence[PatternMap], folder: str | Path) -> Iterator[Path]:
    """Write every sheet as a PNG file, and yield its path."""
    per_sheet = ROWS * COLUMNS
    for number, start in enumerate(range(0, len(maps), per_sheet), start=1):
        path = Path(folder) / f"sheet-{number:03}.png"
        page = draw_sheet(maps[start : start + per_sheet])
        with atomic_path(path) as part:
            page.savefig(part, format="png", dpi=DPI)
        yield path


@theme.apply()
def draw_sheet(maps: Sequence[PatternMap]) -> canvases.Figure:
    """Draw up to six maps, each with its id; model, lens, layer and head are not shown."""
    page = canvases.Figure(figsize=(WIDTH, HEIGHT))
    grid = page.add_gridspec(ROWS, COLUMNS, left=0.04, right=0.99, bottom=0.05, top=0.96, wspace=0.16, hspace=0.24)
    for index, pattern_map in enumerate(maps):
        cell = grid[divmod(index, COLUMNS)].subgridspec(
            2, 2, width_ratios=(6, 1), height_ratios=(1, 6), wspace=0.04, hspace=0.04
        )
        top, main, side = (page.add_subplot(cell[at]) for at in ((0, 0), (1, 0), (1, 1)))
        draw_map(pattern_map, main)
        _draw_margins(pattern_map, top, side)
    return page


def draw_map(pattern_map: PatternMap, main: Axes) -> None:
    """Draw one map; darkness is the square root of the row-normalised |weight|, so that faint shapes are visible."""
    main.imshow(darkness(pattern_map.weights), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    tokens = ["", *pattern_map.source.tokens]
    ticks = {  # the second of two separators is not named
        index: SPECIAL[token]
        for index, (before, token) in enumerate(pairwise(tokens))
        if token in SPECIAL and token != before
    }
    main.set_xticks(list(ticks), list(ticks.values()), rotation=90, fontsize=8)
    main.set_yticks(list(ticks), list(ticks.values()), fontsize=8)


def _draw_margins(pattern_map: PatternMap, top: Axes, side: Axes) -> None:
    """Draw the mean weight of each key above a map, and that of each offset from query to key beside it."""
    weights = row_shares(pattern_map.weights)
    n = len(weights)
    top.bar(range(n), weights.mean(0), width=1.0, color=theme.ink)
    top.set(xlim=(-0.5, n - 0.5), ylim=(0, BAR_MAX), xticks=[], yticks=[])
    top.set_title(f"{pattern_map.source.id}   {n} tokens, {pattern_map.source.kind}", fontsize=12)
    offsets = range(-MAX_OFFSET, MAX_OFFSET + 1)
    side.barh(offsets, [np.trace(weights, offset) / n for offset in offsets], height=0.9, color=theme.ink)
    side.set(xlim=(0, BAR_MAX), ylim=(MAX_OFFSET + 0.5, -MAX_OFFSET - 0.5), xticks=[], yticks=[-3, 0, 3])
    side.tick_params(labelsize=7, left=False, right=True, labelleft=False, labelright=True)
    for ax in (top, side):
        ax.spines[:].set_color(theme.faint)


def render_terminal(pattern_map: PatternMap, width: int = 76) -> Text:
    """Render a map as half blocks, two rows in a line, at most `width` characters wide."""
    cells = downsample(darkness(pattern_map.weights), width)
    if 2 * len(cells) <= width:
        cells = cells.repeat(2, axis=0).repeat(2, axis=1)
    if len(cells) % 2:
        cells = np.vstack([cells, np.zeros((1, cells.shape[1]))])
    text = Text()
    for upper, lower in zip(cells[::2], cells[1::2], strict=True):
        for above, below in zip(upper, lower, strict=True):
            text.append("▀", Style(color=_grey(above), bgcolor=_grey(below)))
        text.append("\n")
    return text


def downsample(cells: Array, width: int) -> Array:
    """Reduce an image to at most `width` cells by taking maxima.

    >>> downsample(np.eye(4), 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if len(cells) <= width:
        return cells
    edges = np.linspace(0, len(cells), width, endpoint=False).astype(int)
    return np.maximum.reduceat(np.maximum.reduceat(cells, edges, axis=0), edges, axis=1)


def darkness(weights: Array) -> Array:
    """Return how dark each cell is drawn; 1 and above is black."""
    roots = np.sqrt(row_shares(weights))
    dark: Array = roots / max(float(np.quantile(roots, BLACK_QUANTILE)), np.sqrt(CONTRAST / len(roots)))
    return dark


def row_shares(weights: Array) -> Array:
    """Return |w| / Σ|w| of every row, and 0 in rows without weight."""
    absolute = np.abs(weights)
    total = absolute.sum(-1, keepdims=True)
    return absolute / np.where(total > 0, total, 1.0)


def _grey(dark: float) -> str:
    level = round(255 * (1 - min(1.0, float(dark))))
    return f"rgb({level},{level},{level})"
