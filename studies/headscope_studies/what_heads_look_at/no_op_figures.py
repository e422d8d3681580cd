"""Draw and tabulate what a token of a group counts beside an ordinary one, by every measure."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.core.estimate import ENDS, estimate
from headscope.experiments.summary import list_tasks
from headscope.plotting import series, theme
from headscope.plotting.panels import new_grid
from headscope.reporting.frames import TableColumn, to_frame
from headscope_studies.what_heads_look_at.no_op import GROUPS, begin_sentence, name_no_ops

ORDINARY_TOKEN = "1 = an ordinary token"


@theme.apply()
def draw_no_ops(networks: xr.Dataset, width: float = theme.PAGE[0]) -> Figure:
    """Draw the ratio of every measure on a logarithmic axis, a panel for each network, a mark for each group.

    Left of the line at 1 a token of the group counts less than an ordinary one.
    """
    names = list_tasks(networks)
    measures = [str(name) for name in networks["measure"].values]
    values = np.concatenate([networks[f"ratio{end}"].values.ravel() for end in ENDS])
    finite = np.append(values[np.isfinite(values) & (values > 0)], 1.0)
    limits = (float(finite.min()) / 1.6, float(finite.max()) * 1.6)
    across = min(len(names), 3)
    size = (width, 0.9 + -(-len(names) // across) * (0.55 + 0.42 * len(measures)))
    grid = new_grid(size, len(names), across, share_x=True, share_y="all")
    for panel, name in zip(grid.panels, names, strict=True):
        _draw_network(panel, networks.sel(task=name), measures, limits)
    for row in grid.rows:
        row[0].set_yticks(range(len(measures)), labels=measures, fontsize=theme.text_size("note"))
    grid.name_panels(names, width=(width - 1.2) / across - 0.1, role="note")
    grid.add_legend()
    label = f"weight on one token, {ORDINARY_TOKEN}"
    grid.figure.supxlabel(label, fontsize=theme.text_size("note"), color=theme.quiet)
    return grid.figure.figure


def _draw_network(panel: Axes, network: xr.Dataset, measures: list[str], limits: tuple[float, float]) -> None:
    panel.set_xscale("log")
    panel.axvspan(limits[0], 1, color=theme.faint, alpha=0.5, linewidth=0)
    panel.axvline(1, color=theme.quiet, linewidth=0.8)
    rows, shifts = np.arange(len(measures)), series.spread_series(len(GROUPS), 0.16)
    for (group, label), style, shift in zip(GROUPS.items(), series.styles(GROUPS, "groups"), shifts, strict=True):
        ratios = estimate(network, "ratio").sel(group=group, measure=measures)
        series.draw_estimates(panel, ratios, rows + shift, style, along="x", label=label)
    panel.set(xlim=limits, ylim=(len(measures) - 0.5, -0.5))
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    series.style_axes(panel, "x")
    panel.tick_params(axis="y", length=0)


def no_op_table(networks: xr.Dataset) -> pd.DataFrame:
    """Return the ratio of each group by every measure, a row for each network and group."""
    columns = [TableColumn(str(name), "ratio", {"measure": name}) for name in networks["measure"].values]
    named = networks.assign_coords(group=[GROUPS[str(name)] for name in networks["group"].values])
    return to_frame(named, {"task": "model", "group": "token"}, columns)


def answer_table(networks: xr.Dataset) -> pd.DataFrame:
    """Return by which measures attention to a group is a no-op: a row for each network and group."""
    rows = []
    for name in list_tasks(networks):
        network = networks.sel(task=name)
        for group, title in GROUPS.items():
            answers = name_no_ops(network, group)
            raw = f"{float(network['ratio'].sel(group=group, measure='raw')):.3g} ×"
            row = {"model": name, "token": title, "raw attention": raw if answers else f"{raw}, not attended to more"}
            measures = [str(measure) for measure in networks["measure"].values[1:]]
            rows.append(row | {measure: answers.get(measure, "–") for measure in measures})
    return pd.DataFrame(rows).set_index(["model", "token"])


def list_no_ops(network: xr.Dataset) -> list[dict[str, Any]]:
    """Return each group, its ratio by raw attention, and by the measures by which it is a no-op, or counts.

    `attended` is whether it is attended to more than an ordinary token; without that it is no no-op by any measure.
    """
    rows = []
    for group in ("sep", "cls", "period_comma"):
        answers, ratio = name_no_ops(network, group), network["ratio"].sel(group=group)
        row: dict[str, Any] = {"name": GROUPS[group], "subject": begin_sentence(group, "is", "are")}
        row |= {"raw": float(ratio.sel(measure="raw")), "attended": bool(answers)}
        for name, answer in (("no_op", "no-op"), ("counts", "counts")):
            row[name] = [(key, float(ratio.sel(measure=key))) for key, known in answers.items() if known == answer]
        rows.append(row)
    return rows
