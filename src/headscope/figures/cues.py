"""Productivity and coverage of cues."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.core.provenance import read_provenance
from headscope.plotting import canvas, fonts, series, theme
from headscope.uncertainty.intervals import wilson_intervals

LOOKS: dict[bool, dict[str, Any]] = {
    True: {"color": series.STYLES[0].colour, "markeredgecolor": theme.ink, "markeredgewidth": 0.4, "markersize": 4.4},
    False: {"color": "#b3b3b3", "markeredgewidth": 0.0, "markersize": 2.2},
}
"""Markers of cues that are significant, and of others."""

OFFSET = 3.5
"""Points between a dot and its label."""


@dataclass(frozen=True)
class Cues(Figure):
    """Productivity over coverage of every cue of a result of `hs.cues`; coverage is on a logarithmic scale.

    Between the thin lines, chance is within the 95 % interval of a cue. Filled are cues that are significant after the
    correction for all cues. The `labels` cues with the largest gain, up or down, are labelled. Of a classification the
    difference between productivity and chance is shown. `size` is the width in inches.
    """

    labels: int = 12
    title: str | None = None
    size: float | None = None

    cites = ("niven2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a dot for each cue."""
        if not {"productivity", "coverage", "chance"} <= set(data):
            raise InputError("These are no cues. Count them: hs.cues(data).")
        if not data.sizes["cue"]:
            raise InputError("There is nothing to draw: the data has no cue.")
        chance = np.unique(data["chance"].values.round(9))
        one = len(chance) == 1
        y = data["productivity"].values - (0.0 if one else data["chance"].values)
        ax, width = series.open_axes(target, ["", ""], self.size, 5.2)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        x = data["coverage"].values
        sure = data["productivity_significant"].values.astype(bool)
        handles = []
        for marked, label in ((False, "other cues"), (True, "significant after correction")):
            look = {"marker": "o", "linestyle": "none", **LOOKS[marked]}
            ax.plot(x[sure == marked], y[sure == marked], zorder=6 if marked else 3, **look)
            handles.append(Line2D([], [], label=label, **look))
        _draw_chance(ax, float(chance[0]) if one else None, int(data["n"]))
        ax.set_xlim(0.8 * x.min(), 1.3)
        ax.margins(y=0.07)
        _label_cues(ax, x, y, data, self.labels)
        series.style_axes(ax, "both")
        facts = read_provenance(data)
        n = int(data["n"])
        note = f"{data.sizes['cue']:,} cues in {n:,} examples. Dashed: chance"
        note += "; thin lines: within them, chance is in a cue's 95 % interval." if one else "."
        variant = "" if facts.get("variant", "exclusive") == "exclusive" else f", {facts['variant']}"
        title = self.title if self.title is not None else f"Cues in {_where(facts)}{variant}"
        label = "productivity" if one else "productivity − chance"
        series.label_series(ax, handles, width, title=title, x="coverage", y=label, note=note)


def _where(facts: dict[str, Any]) -> str:
    parts = [str(part) for part in facts.get("parts", [])]
    return " and ".join(parts) or "texts"


def _draw_chance(ax: Axes, chance: float | None, n: int) -> None:
    """Draw the line of chance, and how far from it productivity may be by chance."""
    level = 0.0 if chance is None else chance
    ax.axhline(level, color=theme.quiet, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    if chance is None:
        return
    counts = np.unique(np.geomspace(1, n, 200).round())
    successes = np.linspace(0, 1, 2001)[:, None] * counts
    low, high = wilson_intervals(successes, counts)
    within = (low <= chance) & (chance <= high)
    rates = successes / counts
    for edge in (np.where(within, rates, np.inf).min(0), np.where(within, rates, -np.inf).max(0)):
        ax.plot(counts / n, edge, color=theme.quiet, linewidth=0.6, zorder=2)


def _label_cues(ax: Axes, x: Any, y: Any, data: xr.Dataset, count: int) -> None:
    """Label the cues with the largest gain or loss, each beside its dot where there is space for it."""
    low, high = ax.get_xlim()
    across, up = np.log(x / low) / np.log(high / low), (y - ax.get_ylim()[0]) / np.ptp(ax.get_ylim())
    width, height = canvas.axes_size(ax)
    size = theme.text_size("small")
    height = 0.6 * height  # title, legend and note are added later
    line, gap = 1.25 * size / 72 / max(height, 1.0), OFFSET / 72 / max(width, 1.0)
    sure = data["productivity_significant"].values.astype(bool)
    taken = [(start - 0.006, start + 0.006, row) for start, row in zip(across[sure], up[sure], strict=True)]
    labelled: set[tuple[float, float]] = set()
    for index in np.argsort(-np.abs(data["gain"].values), kind="stable")[: 4 * count]:
        text, point = fonts.to_label(str(data["cue"].values[index])), (float(across[index]), float(up[index]))
        wide = (1.1 * fonts.label_width([text]) * size + 0.1) / max(width, 1.0)  # axes lose some width to their labels
        for right in (True, False):
            start = point[0] + gap if right else point[0] - wide - gap
            clash = [begin < start + wide and start < end and abs(row - point[1]) < line for begin, end, row in taken]
            if start < 0 or any(clash) or point in labelled or len(labelled) >= count:
                continue
            taken.append((start, start + wide, point[1]))
            labelled.add(point)
            _write(ax, text, (x[index], y[index]), size, right=right)


def _write(ax: Axes, text: str, point: tuple[float, float], size: float, *, right: bool) -> None:
    ax.annotate(
        text,
        point,
        xytext=(OFFSET if right else -OFFSET, 1.5),
        textcoords="offset points",
        ha="left" if right else "right",
        fontsize=size,
        path_effects=[patheffects.withStroke(linewidth=1.6, foreground="#ffffff")],
        zorder=5,
        parse_math=False,
    )
