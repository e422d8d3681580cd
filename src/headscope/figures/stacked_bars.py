"""Stacked bars, such as the weight on each role of token, layer by layer."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import figure as mpl
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, to_hex
from matplotlib.patches import Patch

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure, Target
from headscope.core.prose import join_words
from headscope.patterns import NAMES
from headscope.plotting import canvas, fonts, scales, series, theme
from headscope.plotting.panels import PanelGrid, open_grid
from headscope.results.select import (
    SUFFIXES,
    further_axes,
    head_variables,
    require_shown_axes,
    restore_axes,
    select_variable,
)
from headscope.results.summarize import describe_mean, make_title, mean_over

SHARES = ("patterns_share", "patterns_layer_share")
"""Variables over all heads."""


@dataclass(frozen=True)
class StackedBars(Figure):
    """A bar for each layer, stacked from the labels along another axis, in one panel for each lens.

    `parts` is the axis that is stacked, by default the variable's own; `along` is the axis of the bars. Each
    part is the mean over heads; `at` selects some of them, or labels along further axes, as source=others. Negative
    parts are stacked below zero. `cmap` colours parts that are numbers; `size` is the width in inches.

    Shares of patterns over all heads are drawn by `variable="patterns_layer_share"`; those of several datasets, joined
    by xarray.concat along an axis such as task, by `variable="patterns_share", along="task"`.
    """

    variable: str | None = None
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    along: str = "layer"
    parts: str | None = None
    title: str | None = None
    size: float | None = None
    cmap: scales.ColourMap = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw one panel for each lens."""
        variable = _select_variable(data, self.variable)
        chosen = select_variable(_add_axes(data, variable), variable, lens=self.lens, at=self.at)
        parts = _select_parts(chosen, self.parts, self.along)
        require_shown_axes("stacked_bars", chosen, parts, self.along)
        over = [dim for dim in ("layer", "head") if dim not in (parts, self.along)]
        known = chosen["value"].notnull().any([dim for dim in chosen["value"].dims if dim != parts]).values
        missing, chosen = join_words(chosen[parts].values[~known], limit=8, empty=""), chosen.isel({parts: known})
        means = mean_over(chosen, over).transpose("lens", parts, self.along, ...)
        width = self.size if self.size is not None else _default_width(means, parts, self.along)
        areas = _part_areas(means[parts].values, scales.find_colours(self.cmap, theme.signed))
        labels = [fonts.to_label(NAMES.get(label, label)) for label in series.axis_labels(parts, means[parts].values)]
        handles = series.legend_patches(areas, labels)[::-1]  # in the order of the stack
        figure = target.open_panels(
            width, 2.9 + 0.18 * (1 + series.fit_legend(labels, width)[1] if width < theme.NARROW else 0)
        )
        width = width if target.is_new else canvas.figure_width(figure)
        grid = _open_panels(figure, means.sizes["lens"], handles, width, parts)
        beside = fonts.label_width(labels) * theme.text_size("note") + 0.55 if width >= theme.NARROW else 0.0
        _draw_panels(grid, means, areas, self.along, (width - beside - 0.75) / means.sizes["lens"])
        overall = variable is not None and variable.endswith(SHARES)
        title = make_title(chosen.assign_attrs(variable="patterns") if overall else chosen, f"by {self.along}")
        note = describe_mean(chosen.drop_vars(["low", "high"], errors="ignore"), over, "")
        note += " Over all heads, the classifier's errors taken out." if overall else ""
        note += f" No value: {missing}." if missing else ""
        grid.write(title=self.title if self.title is not None else title, note=note.strip())


def _open_panels(
    figure: mpl.Figure | mpl.SubFigure, count: int, handles: list[Patch], width: float, parts: str
) -> PanelGrid:
    """Return panels side by side on one scale, with a legend beside the last, or above all in a narrow figure."""
    if width >= theme.NARROW:
        grid = open_grid(figure, count, count, share_y="all")
        grid.panels[-1].legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), title=parts)
        return grid
    columns, lines = series.fit_legend([handle.get_label() for handle in handles], width)
    places = figure.add_gridspec(2, count, height_ratios=[0.18 * (max(1, lines) + 1), 2.0])
    first = figure.add_subplot(places[1, 0])
    panels = [first, *(figure.add_subplot(places[1, index], sharey=first) for index in range(1, count))]
    host = figure.add_subplot(places[0, :])  # a legend of the figure would lie on its title
    host.set_axis_off()
    look: dict[str, Any] = {"loc": "center", "ncols": columns, "borderaxespad": 0, "columnspacing": 1.0}
    host.legend(handles=handles, title=parts, alignment="left", **look)
    return PanelGrid(figure, (tuple(panels),))


def _draw_panels(grid: PanelGrid, means: xr.Dataset, areas: list[dict[str, Any]], along: str, across: float) -> None:
    """Draw the bars of each lens in its panel, which is `across` inches wide."""
    labels = series.axis_labels(along, means[along].values)
    for panel, lens in zip(grid.panels, means["lens"].values, strict=True):
        _draw_stack(panel, means["value"].sel(lens=lens).values, areas)
        series.style_axes(panel)
        series.label_groups(panel, labels, across / len(labels))
        panel.set_xlabel(along, fontsize=theme.text_size("note"), color=theme.quiet)
        panel.tick_params(labelleft=panel is grid.panels[0])
    if len(grid.panels) > 1:
        grid.name_panels((str(lens) for lens in means["lens"].values), width=across)
    grid.name_rows([str(means.attrs["label"])])


def _draw_stack(ax: Axes, values: Any, areas: list[dict[str, Any]]) -> None:
    """Stack positive parts upwards and negative parts downwards."""
    positions = np.arange(values.shape[-1])
    for sign in (1, -1):
        clipped = np.nan_to_num(np.where(values * sign > 0, values, 0.0))
        below = clipped.cumsum(0) - clipped
        for heights, bottom, area in zip(clipped, below, areas, strict=True):
            drawn = heights != 0
            with series.use_hatch_colour(area):
                look = {"width": 0.86, "linewidth": 0.5, "zorder": 2, **area}
                ax.bar(positions[drawn], heights[drawn], bottom=bottom[drawn], **look)
    ax.axhline(0, color=theme.quiet, linewidth=0.6, zorder=3)


def _part_areas(labels: Any, colours: Colormap) -> list[dict[str, Any]]:
    """Return colours and hatches; a gradient where labels are numbers or too many."""
    if len(labels) <= len(series.STYLES) and not np.issubdtype(np.asarray(labels).dtype, np.number):
        return [style.area for style in series.styles(labels, "parts")]
    shades = colours(np.linspace(0.1, 0.9, len(labels)))
    return [{"facecolor": to_hex(shade), "edgecolor": theme.quiet, "hatch": ""} for shade in shades]


def _add_axes(data: xr.Dataset, variable: str | None) -> xr.Dataset:
    """Add axes of length 1 to a variable without layers or heads."""
    if variable is None or variable not in data:
        return data
    missing = [axis for axis in ("layer", "head") if axis not in data[variable].coords]
    if not missing:
        return data
    companions = [f"{variable}_{ending}" for ending in SUFFIXES if f"{variable}_{ending}" in data]
    return data[[variable, *companions]].expand_dims({axis: [0] for axis in missing})


def _select_variable(data: xr.Dataset, variable: str | None) -> str | None:
    """Return the requested variable, or the first with an axis to stack."""
    if variable is not None:
        return variable
    whole = restore_axes(data)
    names = [name for name in head_variables(whole) if further_axes(select_variable(whole, name))]
    return names[0] if names else None


def _select_parts(chosen: xr.Dataset, parts: str | None, along: str) -> str:
    """Return the axis that is stacked."""
    axes = [axis for axis in (*further_axes(chosen), "layer", "head") if axis != along]
    if along not in chosen["value"].dims or along == "lens":
        raise unknown_name(f"axis of '{chosen.attrs['variable']}'", along, [*axes, "layer"])
    if parts is not None and parts not in axes:
        raise unknown_name(f"axis of '{chosen.attrs['variable']}'", parts, axes)
    if parts is None and not further_axes(chosen):
        raise InputError(
            f"The figure 'stacked_bars' stacks the parts along an axis, but '{chosen.attrs['variable']}' has none "
            "beside layer and head. Choose a variable such as special_tokens, or draw 'bars'."
        )
    return parts if parts is not None else axes[0]


def _default_width(means: xr.Dataset, parts: str, along: str) -> float:
    """Return the width of all bars and the legend in inches, at most two columns of a paper."""
    legend = fonts.label_width(NAMES.get(str(label), str(label)) for label in means[parts].values) * theme.text_size(
        "note"
    )
    bar = 0.24 if along in ("layer", "head") else 0.45
    return min(
        theme.PAGE[0], max(series.COLUMN_WIDTH, 1.4 + min(legend, 1.6) + means.sizes["lens"] * means.sizes[along] * bar)
    )
