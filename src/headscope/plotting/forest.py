"""Forest plots: changes with their intervals in rows, beside a line at no change."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.core.estimate import Estimate
from headscope.plotting import series, theme
from headscope.plotting.panels import new_grid

ROW = 0.14  # inches
LONGEST = 160.0  # per cent; a change or an interval that goes further ends in an arrow at the edge


@theme.apply()
def forest(
    panels: Mapping[str, xr.Dataset],
    *,
    band: float,
    label: str,
    series_of: Mapping[str, int],
    width: float = theme.PAGE[0],
) -> Figure:
    """Draw changes in per cent, a panel for each title, a row for each `model` and `task`.

    Each Dataset has `value`, `low` and `high` along model, task and lens; rows without a value are empty. Changes
    within ± `band` are shaded; an interval that goes beyond the edge ends in an arrow. `series_of` are the lenses, each
    with the number of its style.
    """
    first = next(iter(panels.values()))
    models, tasks = ([str(name) for name in first[dim].values] for dim in ("model", "task"))
    across = min(len(panels), 4 if width >= theme.NARROW else 2)
    down = -(-len(panels) // across)
    rows = len(models) * (len(tasks) + 1.2)
    size = (width, 0.75 + down * (ROW * rows + 0.45))
    grid = new_grid(size, len(panels), across, share_x=True, share_y="all")
    values = np.concatenate([np.ravel(data[end].values) for data in panels.values() for end in ("low", "high")])
    finite = np.append(values[np.isfinite(values)], [-band, band])
    limits = (max(float(finite.min()), -LONGEST) * 1.06, min(float(finite.max()), LONGEST) * 1.06)
    for panel, data in zip(grid.panels, panels.values(), strict=True):
        _draw_panel(panel, data, series_of, band, limits)
    for row in grid.rows:
        _label_rows(row[0], models, tasks)
    grid.name_panels(panels, role="note")
    grid.add_legend()
    grid.figure.supxlabel(label, fontsize=theme.text_size("note"), color=theme.quiet)
    return grid.figure.figure


def _place(model: int, task: int, tasks: int) -> float:
    """Return the height of a row; models are groups of rows below their names."""
    return model * (tasks + 1.2) + 1 + task


def _draw_panel(
    panel: Axes, data: xr.Dataset, series_of: Mapping[str, int], band: float, limits: tuple[float, float]
) -> None:
    models, tasks = data.sizes["model"], data.sizes["task"]
    panel.axvspan(-band, band, color=theme.faint, alpha=0.6, linewidth=0)
    panel.axvline(0, color=theme.quiet, linewidth=0.6)
    rows = np.array([_place(model, task, tasks) for model in range(models) for task in range(tasks)])
    for (lens, number), shift in zip(series_of.items(), series.spread_series(len(series_of), 0.3), strict=True):
        style, changes = series.STYLES[number], data.sel(lens=lens).transpose("model", "task")
        y = rows + shift
        series.draw_estimates(panel, Estimate.from_fields(changes), y, style, along="x", size=3, label=lens)
        value, low, high = (changes[name].values.ravel() for name in ("value", "low", "high"))
        for far, edge, mark in (
            (np.fmax(value, high) > limits[1], limits[1], ">"),
            (np.fmin(value, low) < limits[0], limits[0], "<"),
        ):
            panel.plot(np.full(far.sum(), edge * 0.98), y[far], mark, color=style.colour, markersize=4)
    panel.set(xlim=limits, ylim=(_place(models - 1, tasks - 1, tasks) + 0.8, -0.2))
    series.style_axes(panel, "x")
    panel.tick_params(axis="y", length=0)


def _label_rows(panel: Axes, models: Sequence[str], tasks: Sequence[str]) -> None:
    """Name tasks in their rows, and each model above its own in bold."""
    labels = [(_place(at, -1, len(tasks)), model) for at, model in enumerate(models)]
    labels += [(_place(at, task, len(tasks)), name) for at in range(len(models)) for task, name in enumerate(tasks)]
    panel.set_yticks([height for height, _ in labels], labels=[name for _, name in labels])
    for tick, (_, name) in zip(panel.get_yticklabels(), labels, strict=True):
        tick.set(fontsize=7.0, fontweight="bold" if name in models else "normal")
