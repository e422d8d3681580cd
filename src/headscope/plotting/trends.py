"""Lines of several lenses along a number, such as the length of inputs: their mean, and every task thinly behind it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.plotting import canvas, series, theme


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
    wide, rows = width >= theme.NARROW, 1 if shares is None else 2
    across, down = (len(panels), rows) if wide else (1, rows * len(panels))
    figure = canvas.new_figure((width, (0.8 if shares is None else 1.0) + 1.7 * down - (0.5 if shares else 0)))
    axes = figure.subplots(down, across, squeeze=False, sharey="row" if wide else False)
    note = theme.text_size("note")
    for at, (title, data) in enumerate(panels.items()):
        own = [axes[row, at] if wide else axes[at * rows + row, 0] for row in range(rows)]
        _draw_lines(own[0], data, x, series_of)
        own[0].set_title(title, fontsize=theme.text_size("label"))
        if marks and title in marks:
            _mark(own[0], *marks[title])
        if shares is not None:
            _draw_shares(own[1], shares[title], x)
        for panel, text in zip(own, (labels[1], "kind of token (%)"), strict=False):
            series.style_axes(panel)
            if at == 0 or not wide:
                panel.set_ylabel(canvas.wrap_text(text, 1.4, note), fontsize=note)
    for panel in axes[0] if wide else axes[::rows, 0]:  # after all lines: panels that share an axis fit them all
        panel.set_ylim(bottom=0)
    figure.supxlabel(labels[0], fontsize=note, color=theme.quiet)
    handles, names = axes[0, 0].get_legend_handles_labels()
    if shares is not None:
        more = axes[1, 0].get_legend_handles_labels()
        handles, names = [*handles, *more[0]], [*names, *more[1]]
    columns = series.fit_legend(names, width - 0.3)[0]
    figure.legend(handles, names, loc="outside upper center", ncols=columns, fontsize=note, columnspacing=1.0)
    return figure


def _draw_lines(panel: Axes, data: xr.Dataset, x: str, series_of: Mapping[str, int]) -> None:
    for lens, number in series_of.items():
        style, part = series.STYLES[number], data.sel(lens=lens)
        for task in part["task"].values:
            thin = part["tasks"].sel(task=task).values
            panel.plot(data[x].values, thin, color=style.colour, linewidth=0.5, alpha=0.45)
        look: dict[str, Any] = {"color": style.colour, "marker": style.mark, "linestyle": style.line, "markersize": 3.5}
        panel.plot(data[x].values, part["mean"].values, linewidth=1.3, label=lens, **look)
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
