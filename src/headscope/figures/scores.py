"""Scores of a model on a task, with their intervals."""

from dataclasses import dataclass

import xarray as xr

from headscope.core.errors import InputError
from headscope.core.estimate import estimate
from headscope.core.figure import Figure, Target
from headscope.core.provenance import read_provenance
from headscope.plotting import canvas, fonts, series, theme
from headscope.results.other_numbers import list_scores

ROW, BARS = 0.26, 2.6  # inches


@dataclass(frozen=True)
class Scores(Figure):
    """The metrics of a model on a task, a row for each, with their 95 % intervals.

    Of a result of `hs.score`. `size` is the width in inches.
    """

    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a row for each metric; the share of the most common label is a dashed line."""
        names = [name for name in list_scores(data) if estimate(data, name).has_interval]
        if not names:
            raise InputError("There is no score with an interval in this data. Compute one: hs.score(model, data).")
        labels = [fonts.to_label(name.replace("_", " ")) for name in names]
        beside = fonts.label_width(labels) * theme.text_size("note") + 0.1  # inches to the left of the axes
        width = beside + BARS if self.size is None else self.size
        ax = target.open_axes(width, 1.4 + ROW * len(names))
        width = width - beside if target.is_new else canvas.axes_size(ax)[0]
        for row, name in enumerate(names):
            series.draw_estimates(ax, estimate(data, name), row, series.STYLES[0], along="x")
        ax.set_yticks(range(len(names)), labels=labels)
        ax.set_ylim(len(names) - 0.4, -0.6)
        note, facts = f"Bars: 95 % interval over examples (n = {int(data['n']):,}).", read_provenance(data)
        if "majority" in data:
            ax.axvline(float(data["majority"]), color=theme.quiet, linewidth=0.8, linestyle="dashed", zorder=1)
            note += " Dashed: accuracy of always the most common label."
        series.style_axes(ax, "x")
        ax.tick_params(axis="y", length=0)
        title = self.title if self.title is not None else f"Scores on {facts.get('task', 'the task')}"
        series.label_series(ax, [], width + 0.6, title=title, x="score", y="", note=note)
