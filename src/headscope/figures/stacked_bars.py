"""Parts stacked on each other, such as the weight on each role of token, layer by layer."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from headscope.core.errors import InputError, unknown_name
from headscope.core.figure import Figure
from headscope.core.prose import join_words
from headscope.patterns.classes import NAMES
from headscope.plotting import canvas, fonts, series, theme
from headscope.results import measured

SHARES = ("patterns_share", "patterns_layer_share")
"""Variables over all heads."""


@dataclass(frozen=True)
class StackedBars(Figure):
    """A bar for each layer, stacked from the labels along another axis, in one panel for each lens.

    `parts` is the axis that is stacked, the variable's own by default; `along` is the one that the bars follow. Each
    part is the mean over heads; `at` narrows them or chooses along further axes, as source=others. Parts below zero
    hang below the line. `size` is the width in inches.

    Shares of patterns over all heads are drawn by `variable="patterns_layer_share"`; those of several datasets, joined
    by xarray.concat along an axis such as task, by `variable="patterns_share", along="task"`.
    """

    variable: str | None = None
    parts: str | None = None
    along: str = "layer"
    lens: tuple[str, ...] | None = None
    at: tuple[str, ...] = ()
    title: str | None = None
    size: float | None = None

    @theme.applied()
    def __call__(
        self,
        data: xr.Dataset,
        *,
        ax: Axes | None = None,
        figure: canvases.Figure | canvases.SubFigure | None = None,
    ) -> canvases.Figure:
        """One panel for each lens."""
        variable = _variable(data, self.variable)
        chosen = measured.part(_per_head(data, variable), variable, lens=self.lens, at=self.at)
        parts = _parts(chosen, self.parts, self.along)
        measured.closed("stacked_bars", chosen, parts, self.along)
        over = [dim for dim in ("layer", "head") if dim not in (parts, self.along)]
        there = chosen["value"].notnull().any([dim for dim in chosen["value"].dims if dim != parts])
        absent, chosen = join_words(chosen[parts][~there.values].values, limit=8), chosen.isel({parts: there.values})
        means = measured.mean_over(chosen, over).transpose("lens", parts, self.along, ...)
        wide = self.size if self.size is not None else _width(means, parts, self.along)
        place = canvas.whole_figure("stacked_bars", ax, figure, (wide, 2.9))
        wide = wide if figure is None else place.bbox.width / place.dpi
        _draw_panels(place, means, parts, self.along, wide)
        over_all = variable is not None and variable.endswith(SHARES)
        named = chosen.assign_attrs(variable="patterns") if over_all else chosen
        title = measured.name(named, f"by {self.along}")
        place.suptitle(canvas.wrapped(self.title if self.title is not None else title, wide, theme.TITLE))
        note = measured.averaged(chosen.drop_vars(["low", "high"], errors="ignore"), over, "")
        note += " Over all heads, the classifier's errors taken out." if over_all else ""
        note += f" No value: {absent}." if absent else ""
        place.supxlabel(canvas.wrapped(note.strip(), wide, theme.NOTE), fontsize=theme.NOTE, color=theme.quiet)
        return canvas.root(place)


def _draw_panels(
    place: canvases.Figure | canvases.SubFigure, means: xr.Dataset, parts: str, along: str, wide: float
) -> None:
    """Panels side by side on one scale, and what is what beside the last."""
    looks = _looks(means[parts].values)
    panels = np.atleast_1d(place.subplots(1, means.sizes["lens"], sharey=True))
    for panel, lens in zip(panels, means["lens"].values, strict=True):
        _stack(panel, means["value"].sel(lens=lens).values, looks)
        series.plain(panel)
        labels = series.named(along, means[along].values)
        series.name_groups(panel, labels, (wide - 1.8) / len(panels) / len(labels))
        panel.set_xlabel(along, fontsize=theme.NOTE, color=theme.quiet)
        if len(panels) > 1:
            panel.set_title(str(lens).replace(":", ":\n", 1).replace(",", ",\n"), fontsize=theme.LABEL)
    panels[0].set_ylabel(str(means.attrs["label"]))
    labels = [fonts.shown(NAMES.get(each, each)) for each in series.named(parts, means[parts].values)]
    handles = series.patches(looks, labels)[::-1]  # the topmost first
    panels[-1].legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), title=parts)


def _stack(ax: Axes, values: Any, looks: list[dict[str, Any]]) -> None:
    """Positive parts upwards, negative ones downwards."""
    places = np.arange(values.shape[-1])
    for sign in (1, -1):
        clipped = np.nan_to_num(np.where(values * sign > 0, values, 0.0))
        below = clipped.cumsum(0) - clipped
        for each, bottom, look in zip(clipped, below, looks, strict=True):
            there = each != 0
            with series.hatched(look):
                ax.bar(places[there], each[there], bottom=bottom[there], width=0.86, linewidth=0.5, zorder=2, **look)
    ax.axhline(0, color=theme.quiet, linewidth=0.6, zorder=3)


def _looks(labels: Any) -> list[dict[str, Any]]:
    """Colours and hatches; shades from one end to the other where labels are numbers, or too many."""
    if len(labels) <= len(series.STYLES) and not np.issubdtype(np.asarray(labels).dtype, np.number):
        return [style.area for style in series.styles(labels, "parts")]
    shades = theme.signed(np.linspace(0.1, 0.9, len(labels)))
    return [{"facecolor": to_hex(shade), "edgecolor": theme.quiet, "hatch": ""} for shade in shades]


def _per_head(data: xr.Dataset, variable: str | None) -> xr.Dataset:
    """The same data, or where the variable is over all heads or layers, it alone, as if there were one of them."""
    if variable is None or variable not in data:
        return data
    missing = [axis for axis in ("layer", "head") if axis not in data[variable].coords]
    if not missing:
        return data
    beside = [f"{variable}_{each}" for each in measured.COMPANIONS if f"{variable}_{each}" in data]
    return data[[variable, *beside]].expand_dims({axis: [0] for axis in missing})


def _variable(data: xr.Dataset, variable: str | None) -> str | None:
    """The one asked for, or the first that has something to stack."""
    if variable is not None:
        return variable
    whole = measured.opened(data)
    own = [name for name in measured.names(whole) if measured.further(measured.part(whole, name))]
    return own[0] if own else None


def _parts(chosen: xr.Dataset, parts: str | None, along: str) -> str:
    axes = [axis for axis in (*measured.further(chosen), "layer", "head") if axis != along]
    if along not in chosen["value"].dims or along == "lens":
        raise unknown_name(f"axis of '{chosen.attrs['variable']}'", along, [*axes, "layer"])
    if parts is not None and parts not in axes:
        raise unknown_name(f"axis of '{chosen.attrs['variable']}'", parts, axes)
    if parts is None and not measured.further(chosen):
        raise InputError(
            f"The figure 'stacked_bars' stacks the parts along an axis, but '{chosen.attrs['variable']}' has none "
            "beside layer and head. Choose a variable such as special_tokens, or draw 'bars'."
        )
    return parts if parts is not None else axes[0]


def _width(means: xr.Dataset, parts: str, along: str) -> float:
    """Room for every bar of every panel, and for what is what; two columns of a paper at most."""
    legend = fonts.width(NAMES.get(str(each), str(each)) for each in means[parts].values) * theme.NOTE
    bar = 0.24 if along in ("layer", "head") else 0.45
    return min(7.0, max(series.COLUMN, 1.4 + min(legend, 1.6) + means.sizes["lens"] * means.sizes[along] * bar))
