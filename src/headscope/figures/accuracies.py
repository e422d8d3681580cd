"""Accuracies of a probe and of its baselines, a row for each group of words."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from headscope.core.errors import InputError
from headscope.core.estimate import estimate
from headscope.core.figure import Figure, Target
from headscope.core.provenance import read_provenance
from headscope.plotting import canvas, fonts, series, theme
from headscope.results.accuracies import select_adjusted_p
from headscope.results.probe_table import find_group_axis, name_best_heads, select_task

ROW, TALLEST, BARS = 0.19, 7.0, 3.2  # inches
MAX_ROWS = 80


@dataclass(frozen=True)
class Accuracies(Figure):
    """The accuracy of a probe, with its 95 % interval, and of its baselines, a row for each group of words.

    Of a result of `hs.probe`. The probe's mark is filled where its gain over the first baseline is significant after
    the correction; behind a group is the attention head that was chosen for it. `task` is that of the probe by default,
    or "control". `size` is the width in inches.
    """

    task: str | None = None
    title: str | None = None
    size: float | None = None

    cites = ("clark2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a row for each group."""
        axis, chosen = find_group_axis(data), select_task(data, self.task)
        labels = [fonts.to_label(str(label)) for label in data[axis].values]
        if not labels:
            raise InputError(f"There is nothing to draw: the data has no {axis}.")
        if len(labels) > MAX_ROWS:
            raise InputError(
                f"There are {len(labels)} rows, but at most {MAX_ROWS} are readable in one figure. Select some of them "
                f"with data.isel({axis}=slice({MAX_ROWS}))."
            )
        if heads := name_best_heads(chosen):
            labels = [f"{label}  {head}" for label, head in zip(labels, heads, strict=True)]
        predictors = [str(name).replace("_", " ") for name in data["predictor"].values]
        row = min(ROW, TALLEST / len(labels))
        text_size = min(theme.text_size("note"), 62 * row)
        names = max(map(fonts.text_width, labels)) * text_size + 0.1  # inches to the left of the axes
        width = names + BARS if self.size is None else self.size
        lines = series.fit_legend(predictors, width - names)[1]
        ax = target.open_axes(width, 1.3 + 0.18 * lines + row * len(labels))
        width = width - names if target.is_new else canvas.axes_size(ax)[0]
        _draw_rows(ax, chosen)
        ax.set_yticks(np.arange(len(labels)), labels=labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        series.style_axes(ax, "x")
        ax.tick_params(axis="y", length=0, labelsize=text_size)
        _label(ax, data, chosen, predictors, width + 0.7, self.title)


def _draw_rows(ax: Axes, chosen: xr.Dataset) -> None:
    y = np.arange(chosen["accuracy"].shape[-1])
    for index, style in reversed(list(enumerate(series.styles(chosen["predictor"].values, "predictors")))):
        accuracy = estimate(chosen, "accuracy").isel(predictor=index)
        if index:  # a baseline
            ax.plot(accuracy.value, y, style.mark, color=style.colour, markersize=3, markerfacecolor="none", zorder=1)
        else:
            series.draw_estimates(ax, accuracy, y, style, along="x", filled=_is_significant(chosen, len(y)))


def _is_significant(chosen: xr.Dataset, count: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if "gain" not in chosen:
        return np.zeros(count, bool)
    return np.asarray((select_adjusted_p(chosen, "gain").values < 0.05) & (chosen["gain"].values > 0))


def _label(
    ax: Axes, data: xr.Dataset, chosen: xr.Dataset, predictors: list[str], width: float, title: str | None
) -> None:
    handles = [
        Line2D([], [], color=style.colour, marker=style.mark, linestyle="none", markersize=4, label=name)
        for name, style in zip(predictors, series.STYLES, strict=False)
    ]
    for handle in handles[1:]:
        handle.set_markerfacecolor("none")
    facts = read_provenance(data)
    name = f"{facts.get('probe', 'probe')} · {facts['lens']}" if "lens" in facts else str(facts.get("probe", "probe"))
    control = " · control task" if str(chosen["task"].item()) == "control" else ""
    note = "Bars: 95 % interval over documents."
    note += f" Filled: better than {predictors[1]}, p < 0.05 after correction." if "gain" in chosen else ""
    counts, unit = chosen["accuracy_n"].values, "mentions" if "kind" in chosen.dims else "words"
    note += f" n = {int(counts.max()):,} {unit} in {int(chosen['documents']):,} documents." if counts.size else ""
    series.label_series(
        ax, handles, width, title=title if title is not None else f"{name}{control}", x="accuracy", y="", note=note
    )
