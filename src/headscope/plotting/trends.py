"""Lines of several lenses along a number, such as the length of inputs: their mean, and every task thinly behind it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.core.estimate import estimate
from headscope.plotting import series, theme
from headscope.plotting.panels import new_grid


@theme.apply()
def trends(
    panels: Mapping[str, xr.Dataset],
    *,
    x: str,
    labels: tuple[str, str],
    series_of: Mapping[str, int],
    marks: Mapping[str, tuple[float, str]] | None = None,
    shares: Mapping[str, xr.DataArray] | None = None,
    width: float = theme.PAGE[0],
) -> Figure:
    """Draw a panel for each title: `mean` along lens and x, and `tasks` along task, lens and x.

    `labels` are those of x and y; `series_of` are the lenses, each with the number of its style. `marks` are vertical
    lines with their texts. Below each panel the `shares` of its `kind`s are stacked along x.
    """
    wide, kinds = width >= theme.NARROW, 1 if shares is None else 2
    across, down = (len(panels), kinds) if wide else (1, kinds * len(panels))
    size = (width, (0.8 if shares is None else 0.5) + 1.7 * down)
    grid = new_grid(size, across * down, across, share_y="row" if wide else "none")
    upper, lower = grid.rows[0] if wide else grid.panels[::kinds], grid.panels[across:] if wide else grid.panels[1::2]
    for panel, (title, data) in zip(upper, panels.items(), strict=True):
        _draw_lines(panel, data, x, series_of)
        panel.set_title(title, fontsize=theme.text_size("label"))
        series.style_axes(panel)
        if marks and title in marks:
            _mark(panel, *marks[title])
    for panel, title in zip(lower if shares is not None else (), panels, strict=False):
        _draw_shares(panel, (shares or {})[title], x)
        series.style_axes(panel)
    for panel in upper:  # after all lines: panels that share an axis fit them all
        panel.set_ylim(bottom=0)
    grid.name_rows(down * (labels[1], "kind of token (%)")[:kinds])
    grid.figure.supxlabel(labels[0], fontsize=theme.text_size("note"), color=theme.quiet)
    grid.add_legend([upper[0], *([] if shares is None else [lower[0]])])
    return grid.figure.figure


def _draw_lines(panel: Axes, data: xr.Dataset, x: str, series_of: Mapping[str, int]) -> None:
    for lens, number in series_of.items():
        style, values = series.STYLES[number], data.sel(lens=lens)
        for task in values["task"].values:
            thin = values["tasks"].sel(task=task).values
            panel.plot(data[x].values, thin, color=style.colour, linewidth=0.5, alpha=0.45)
        series.draw_estimates(panel, estimate(values, "mean"), data[x].values, style, kind="line", size=3.5, label=lens)
    whole = np.issubdtype(data[x].dtype, np.integer)
    if whole:
        panel.set_xticks(data[x].values[:: 1 + data.sizes[x] // 8])


def _mark(panel: Axes, x: float, text: str) -> None:
    panel.axvline(x, color=theme.ink, linewidth=0.8, linestyle=(0, (2, 1.5)))
    look: dict[str, Any] = {"fontsize": theme.text_size("note"), "va": "bottom", "ha": "left"}
    panel.annotate(text, (x, 0.02), (2, 0), ("data", "axes fraction"), "offset points", **look)


def _draw_shares(panel: Axes, shares: xr.DataArray, x: str) -> None:
    bottom = np.zeros(shares.sizes[x])
    for style, kind in zip(reversed(series.STYLES), shares["kind"].values, strict=False):
        part = 100 * shares.sel(kind=kind).values
        with series.use_hatch_colour(style.area):
            panel.bar(shares[x].values, part, bottom=bottom, width=0.86, linewidth=0.5, label=str(kind), **style.area)
        bottom = bottom + part
    panel.set_xticks(shares[x].values[:: 1 + shares.sizes[x] // 8])
    panel.set_ylim(0, 100)
