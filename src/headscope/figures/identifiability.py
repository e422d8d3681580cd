"""The range of each weight of one row that leaves the output unchanged."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import FuncNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from headscope.core.figure import Figure, Target
from headscope.core.provenance import read_provenance
from headscope.plotting import canvas, fonts, heatmap, scales, selection, theme

PLOT = 4.4  # inches of weights, beside the tokens
TALL = 20  # keys; for more, the axis of weights is labelled at top and bottom
AxisSpacing = Literal["linear", "root"]

CERTAIN = 1e-6  # an interval narrower than this share of the row is a point


@dataclass(frozen=True)
class Identifiability(Figure):
    """A bar per key from the least to the greatest weight with the same output, and the raw and effective weights.

    It draws the result of `hs.identifiability`. Effective weights need not be probabilities, so they may lie outside
    the bar. The axis follows the square root of the weights, so that small ones are visible beside large ones;
    `scale="linear"` changes that. `size` is the width in inches.
    """

    scale: AxisSpacing = "root"
    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the intervals of one row."""
        selection.require_variables(data, "raw", "effective", "least", "greatest")
        keys = data.sizes["key"]
        row, font, size = _fit_rows(data, self.size)
        ax = target.open_axes(*size)
        width = size[0] - fonts.label_width(selection.token_texts(data, "key")) * font - 0.5  # of the axes
        if not target.is_new:
            width, row = canvas.axes_size(ax)[0], canvas.axes_size(ax)[1] / keys
        note = theme.text_size("note")
        _draw_intervals(ax, data, row)
        step = _label_keys(ax, data, row, font)
        _set_scale(ax, self.scale, width)
        above = 1.6 * note if keys > TALL else 0.0  # points of the upper tick labels
        lines = _add_legend(ax, above, width)
        title = self.title if self.title is not None else _title(data)
        canvas.set_title(ax, title, width, loc="left", pad=10 + 1.6 * note * lines + above)
        unit = "weight (square-root scale)" if self.scale == "root" else "weight"
        caption = _caption(data) + (f" Tokens: {heatmap.describe_step(step)}." if step > 1 else "")
        ax.set_xlabel(f"{unit}\n{canvas.wrap_text(caption, width, note)}", fontsize=note)


def _draw_intervals(ax: Axes, data: xr.Dataset, row: float) -> None:
    """Draw bars, a dot for each raw weight, and an open diamond for each effective weight."""
    positions = np.arange(data.sizes["key"])
    least, greatest = data["least"].values, data["greatest"].values
    dot = min(4.5, row * 72 * 0.36)  # points
    ax.axvline(0, color=theme.quiet, linewidth=0.6, zorder=1)
    ax.barh(positions, greatest - least, left=least, height=0.62, color=BAR, edgecolor=EDGE, linewidth=0.5, zorder=2)
    ax.plot(data["effective"].values, positions, **{**EFFECTIVE, "markersize": 1.45 * dot}, zorder=3)
    ax.plot(data["raw"].values, positions, **{**RAW, "markersize": dot}, zorder=4)


BAR, EDGE = "#c3d9ee", "#6f9cc7"
RAW: dict[str, Any] = {"marker": "o", "linestyle": "none", "color": theme.ink, "markeredgewidth": 0.0}
EFFECTIVE: dict[str, Any] = {
    "marker": "D",
    "linestyle": "none",
    "markerfacecolor": "none",
    "markeredgecolor": theme.negative,
    "markeredgewidth": 0.9,
}


def _label_keys(ax: Axes, data: xr.Dataset, row: float, font: float) -> int:
    """Label tokens on the left, every n-th where not all fit, and weights below, for long texts also above.

    Return n.
    """
    keys = data.sizes["key"]
    ax.set_ylim(keys - 0.4, -0.6)
    step = heatmap.label_tokens(ax.yaxis, data, "key", row, size=font)
    ax.set_ylabel("key: attended to", color=theme.quiet, fontsize=theme.text_size("note"))
    tall = keys > TALL
    ax.tick_params(axis="x", labelsize=theme.text_size("note"), width=0.5, length=2.5, labeltop=tall, top=tall)
    ax.grid(axis="x", color=theme.faint, linewidth=0.4)
    for y in np.arange(4.5, keys - 1, 5):
        ax.axhline(y, color=theme.faint, linewidth=0.4, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["right", "top"]].set_visible(False)
    return step


def _set_scale(ax: Axes, scale: AxisSpacing, width: float) -> None:
    """Set the limits and ticks of an axis of weights `width` inches wide, with a margin beyond the outermost marks."""
    ends = np.array([float(end) for end in ax.dataLim.intervalx])
    if scale == "root":
        ax.set_xscale("function", functions=(scales.signed_root, scales.signed_square))
        ends = scales.signed_root(ends)
    margin = 0.04 * (float(np.ptp(ends)) or 1.0)
    ends += [-margin, margin]
    norm = Normalize(*ends)
    if scale == "root":
        ends = scales.signed_square(ends)
        norm = FuncNorm((scales.signed_root, scales.signed_square), *ends)
    ticks = scales.choose_ticks(norm, width, theme.text_size("note"), across=True)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: scales.format_tick(value)))
    ax.set_xlim(*ends)


def _add_legend(ax: Axes, above: float, width: float) -> int:
    """Add a legend above the axes and `above` points of tick labels, and return its number of lines."""
    handles = [
        Patch(facecolor=BAR, edgecolor=EDGE, linewidth=0.5, label="range with this output"),
        Line2D([], [], **RAW, markersize=4.5, label="raw"),
        Line2D([], [], **EFFECTIVE, markersize=6.0, label="effective"),
    ]
    size = theme.text_size("note")
    total = sum(fonts.text_width(str(handle.get_label())) * size + 3.2 * size / 72 for handle in handles)
    columns = 3 if total < width else 1
    spacing = {"borderaxespad": 0.3 + above / size, "handlelength": 1.2, "columnspacing": 1.2}
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, **spacing)
    return len(handles) // columns


def _title(data: xr.Dataset) -> str:
    facts = read_provenance(data)
    if "layer" not in facts:
        return "identifiability"
    token = fonts.to_label(str(facts["query_token"]))
    return f"identifiability · L{facts['layer']}H{facts['head']} · query {facts['query']}: {token}"


def _caption(data: xr.Dataset) -> str:
    """Return for how many keys the output leaves the weight undetermined."""
    width = (data["greatest"] - data["least"]).values
    total = float(data["raw"].sum()) or 1.0
    facts = read_provenance(data)
    known = f"{facts['n']} keys, values of rank {facts['rank']}. " if "rank" in facts else ""
    if width.max() <= CERTAIN * total:
        return f"{known}No other row of weights has this output: every weight is determined."
    free = int((width > data["raw"].values).sum())
    return f"{known}For {free} of {len(width)} keys the interval is wider than the weight itself."


def _fit_rows(data: xr.Dataset, width: float | None) -> tuple[float, float, tuple[float, float]]:
    """Return the height of a row in inches, the font size of tokens, and the size of the figure in inches."""
    row = heatmap.fit_rows(data.sizes["key"], 0.26, around=1.9)
    label = fonts.label_width(selection.token_texts(data, "key"))
    natural = min(theme.PAGE[0], label * heatmap.font_size(row) + 0.6 + PLOT)
    total = width if width is not None else natural
    font = heatmap.fit_label_size(row, label, total)
    if total < label * font + 1.1:
        raise heatmap.too_narrow(total)
    return row, font, (total, row * data.sizes["key"] + 1.9)
