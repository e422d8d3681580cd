"""One quantity of every task of a study, with its intervals."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

from headscope.core.errors import InputError, unknown_name
from headscope.core.estimate import Estimate
from headscope.core.figure import Figure, Target
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.plotting import canvas, fonts, series, theme
from headscope.results.task_quantities import count_places, list_axes, list_quantities, stack_places

ROW, TALLEST, BARS = 0.16, 7.0, 3.0  # inches


@dataclass(frozen=True)
class Tasks(Figure):
    """A quantity of every task of a study, with its 95 % interval; of several lenses or groups each has its marks.

    Of a result of `hs.study`. `variable` is the first that can be drawn by default. `size` is the width in inches.
    """

    variable: str | None = None
    title: str | None = None
    size: float | None = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a group of rows for each task."""
        name, quantity = _select_quantity(list_quantities(data), self.variable)
        tasks = [fonts.to_label(str(task)) for task in quantity.value["task"].values]
        if not tasks:
            raise InputError("There is nothing to draw: the data has no task.")
        places = stack_places(quantity)
        labels = _name_places(places, list_axes(quantity))
        look = series.styles(labels, "series")
        beside = fonts.label_width(tasks) * theme.text_size("note") + 0.1  # inches to the left of the axes
        width = beside + BARS if self.size is None else self.size
        lines = series.fit_legend(labels, width - beside)[1]
        height = min(TALLEST, ROW * len(tasks) * (len(labels) + 0.6))
        ax = target.open_axes(width, 1.3 + 0.18 * lines + height)
        width = width - beside if target.is_new else canvas.axes_size(ax)[0]
        offsets = (np.arange(len(labels)) - (len(labels) - 1) / 2) / (len(labels) + 0.6)
        for index, (style, offset) in enumerate(zip(look, offsets, strict=True)):
            series.draw_estimates(ax, places.isel(place=index), np.arange(len(tasks)) + offset, style, along="x")
        ax.set_yticks(range(len(tasks)), labels=tasks)
        ax.set_ylim(len(tasks) - 0.4, -0.6)
        series.style_axes(ax, "x")
        ax.tick_params(axis="y", length=0)
        marks = [
            Line2D([], [], color=style.colour, marker=style.mark, linestyle="none", markersize=4, label=label)
            for label, style in zip(labels, look, strict=True)
        ]
        title = self.title if self.title is not None else _describe(data)
        note = f"Bars: 95 % interval{_describe_n(data)}."
        label = fonts.to_label(name.replace("_", " "))
        series.label_series(ax, marks, width + 0.7, title=title, x=label, y="", note=note)


def _select_quantity(quantities: dict[str, Estimate], variable: str | None) -> tuple[str, Estimate]:
    """Return the requested quantity, or the first of which not too much is drawn."""
    if variable is not None and variable not in quantities:
        raise unknown_name("quantity with an interval in this study", variable, list(quantities))
    names = [variable] if variable is not None else list(quantities)
    for name in names:
        if count_places(quantities[name]) <= len(series.STYLES):
            return name, quantities[name]
    if not names:
        raise InputError("There is no quantity of tasks with an interval in this data. Run a study: hs.study(name).")
    axes = list_axes(quantities[names[0]])
    raise InputError(
        f"'{names[0]}' has {count_places(quantities[names[0]])} values for each task, but only {len(series.STYLES)} "
        f"can be told apart in one figure. Select along {join_words(axes)} with data.sel."
    )


def _name_places(places: Estimate, axes: list[str]) -> list[str]:
    """Return the labels along all axes of each series; a number is named with its axis."""
    labels = {axis: places.value[axis].values.tolist() for axis in axes}
    texts = [[label if isinstance(label, str) else f"{axis} {label}" for label in labels[axis]] for axis in axes]
    return [fonts.to_label(", ".join(row)) for row in zip(*texts, strict=True)] if axes else [""]


def _describe(data: xr.Dataset) -> str:
    """Return the study, the model and, if there is only one, the lens."""
    facts = read_provenance(data)
    names = [str(facts[name]).replace("_", " ") for name in ("study", "model") if name in facts]
    lenses = data["lens"].values.tolist() if data.sizes.get("lens") == 1 else []
    return " · ".join([*names, *map(str, lenses)]) or "Tasks"


def _describe_n(data: xr.Dataset) -> str:
    facts = read_provenance(data)
    n = f" over inputs (n = {facts['n']:,})" if isinstance(facts.get("n"), int) else " over inputs"
    return f"{n}; it holds those of all {data.sizes['seed']} seeds" if data.sizes.get("seed", 1) > 1 else n
