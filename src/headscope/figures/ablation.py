"""How a score changes without sets of heads."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.ticker import MaxNLocator

from headscope.core.errors import InputError
from headscope.core.estimate import estimate
from headscope.core.figure import Figure, Target
from headscope.core.provenance import read_provenance
from headscope.plotting import canvas, series, theme
from headscope.results.select import stack_sets

ROW = 0.2  # inches


@dataclass(frozen=True)
class Ablation(Figure):
    """The change of a score without each set of heads, a row for each, with its 95 % interval.

    Of a result of `hs.ablate`; changes that are significant after the correction are filled. `size` is the width in
    inches. Single heads are easier to compare in the grid of the figure "heads".
    """

    title: str | None = None
    size: float | None = None

    cites = ("michel2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a row for each set."""
        if not {"change", "ablated"} <= set(data):
            raise InputError("This is no ablation. Compute one: hs.ablate(model, data).")
        rows = stack_sets(data)
        if not rows.sizes["set"]:
            empty = next((dim for dim in data["change"].dims if not data.sizes[dim]), "changes")
            raise InputError(f"There is nothing to draw: the data has no {empty}.")
        names, y = [str(name) for name in rows["set"].values], np.arange(rows.sizes["set"])
        width = series.COLUMN_WIDTH if self.size is None else self.size
        ax = target.open_axes(width, 1.7 + ROW * len(names))
        width = width if target.is_new else canvas.axes_size(ax)[0]
        ax.axvline(0, color=theme.quiet, linewidth=0.6, zorder=1)
        sure = rows["change_significant"].values.astype(bool)
        series.draw_estimates(ax, estimate(rows, "change"), y, series.STYLES[0], along="x", filled=sure)
        ax.set_yticks(y, labels=names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        series.style_axes(ax, "x")
        ax.xaxis.set_major_locator(MaxNLocator(5))
        facts, metric = read_provenance(data), str(data["change"].attrs.get("long_name", "score"))
        title = self.title if self.title is not None else str(data["change"].attrs.get("title", "change"))
        note = f"Bars: 95 % interval over examples, paired. Filled: p < {facts.get('level', 0.05):g} after correction."
        note += f" n = {facts['n']:,}." if "n" in facts else ""
        series.label_series(ax, [], width, title=title, x=f"difference in {metric}", y="", note=note)
