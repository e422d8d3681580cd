"""How faithful lenses are, a row for each, with their intervals."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from headscope.core.estimate import estimate
from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, fonts, series, theme
from headscope.results.judged import CHANCE, describe_quantity, find_quantity, list_effects, sort_lenses

ROW, AXES = 0.3, 2.7  # inches


@dataclass(frozen=True)
class Faithfulness(Figure):
    """How well each lens agrees with interventions: a row for each, best first, with its 95 % interval over examples.

    Of a result of `hs.faithfulness`. `variable` is the quantity, such as rank_correlation, top_share,
    mass_without_effect or deletion_area; where it has several effects, `effect` names one, and each is drawn by
    default but the first, which is the norm lens by definition. A dashed line is chance. `size` is the width in inches.
    """

    variable: str | None = None
    effect: str | None = None
    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a row for each lens."""
        name = find_quantity(data, self.variable)
        effects = list_effects(data, name, self.effect)
        data = sort_lenses(data, name, effects[0])
        labels = [fonts.to_label(str(lens)) for lens in data["lens"].values]
        beside = fonts.label_width(labels) * theme.text_size("note") + 0.1  # inches to the left of the axes
        width = beside + AXES if self.size is None else self.size
        ax = target.open_axes(width, 1.7 + ROW * len(labels))
        width = width - beside if target.is_new else canvas.axes_size(ax)[0]
        handles = _draw_effects(ax, data, name, effects)
        ax.set_yticks(np.arange(len(labels)), labels=labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        series.style_axes(ax, "x")
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.tick_params(axis="y", length=0)
        about = describe_quantity(data, name) + (f" · {effects[0]}" if len(effects) == 1 and effects[0] else "")
        title = self.title if self.title is not None else about
        note = f"Bars: 95 % interval over examples (n = {int(data['n']):,})."
        note += " Dashed: by chance." if CHANCE.get(name) in data else ""
        series.label_series(ax, handles, width + 0.6, title=title, x=name.replace("_", " "), y="", note=note)


def _draw_effects(ax: Axes, data: xr.Dataset, name: str, effects: list[str | None]) -> list[Artist]:
    """Draw the estimates of each effect, shifted so that they do not overlap."""
    shifts, handles, rows = series.spread_series(len(effects), 0.22), [], np.arange(data.sizes["lens"])
    for effect, shift, style in zip(effects, shifts, series.styles(effects, "effects"), strict=True):
        at = {} if effect is None else {"effect": effect}
        values = estimate(data, name).sel(**at)
        label = (effect or name).replace("_", " ")
        handles.append(series.draw_estimates(ax, values, rows + shift, style, along="x", label=label))
        if CHANCE.get(name) in data:
            chance = float(data[CHANCE[name]].sel(at))
            ax.axvline(chance, color=style.colour, linewidth=0.8, linestyle="dashed", zorder=1)
    if ax.get_xlim()[0] < 0 < ax.get_xlim()[1]:
        ax.axvline(0, color=theme.quiet, linewidth=0.6, zorder=1)
    return handles
