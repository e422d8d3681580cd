"""Figures that compare models and tasks: verdicts, changes with intervals, and lines along a number."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from headscope.core.errors import InputError
from headscope.plotting.forest import LONGEST, forest
from headscope.plotting.trends import trends
from headscope.plotting.verdict_grid import LOOKS, verdict_grid
from tests.figures.layout import find_faults
from tests.plotting.test_facets import check_filled

MODELS, TASKS = ["all-MiniLM-L6-v2", "e5-small", "all-mpnet-base-v2"], ["RTE", "SST-2"]
KINDS = ["holds", "refuted", "holds only without padding", "not reproduced", "undecided", "does not apply"]
LENSES = {"effective": 1, "paper": 2}
WIDTHS = pytest.mark.parametrize("width", [3.3, 6.9])


def verdicts():
    cells = [[KINDS[(row + column) % 6] for column in range(6)] for row in range(3)]
    claims = ["Vertical patterns fall.", "A claim that is so long that it needs several lines in any figure.", "Short."]
    return pd.DataFrame(cells, claims, pd.MultiIndex.from_product([MODELS, TASKS]))


@WIDTHS
def test_every_verdict_is_a_cell_with_its_letter_and_colour(width):
    table = verdicts()
    table.iloc[0, 0] = ""  # not judged
    figure = verdict_grid(table, KINDS, width=width)
    check_filled(figure, width)
    (ax,) = figure.axes
    letters = [text.get_text() for text in ax.texts if len(text.get_text()) == 1]
    looks = dict(zip(KINDS, LOOKS, strict=True))
    shown = [kind for row in table.values for kind in row if kind]
    assert letters == [looks[kind][1] for kind in shown]
    assert len(ax.patches) == len(shown) == 17
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        f"{looks[kind][1]}  {kind}" for kind in KINDS
    ]
    names = [text.get_text().replace("\n", "") for text in ax.texts]
    assert set(MODELS) <= set(names)
    assert figure._repr_png_()[1]["width"] == round(96 * width)  # a notebook shows it without pyplot


def test_too_many_kinds_of_verdicts_are_an_error():
    with pytest.raises(InputError, match="7 kinds of verdicts, but only 6"):
        verdict_grid(verdicts(), [*KINDS, "another"])


def changes(largest=20.0):
    value = np.linspace(-60, largest, 12).reshape(3, 2, 2)
    value[1, 1, 0] = np.nan
    dims, coords = ("model", "task", "lens"), {"model": MODELS, "task": TASKS, "lens": list(LENSES)}
    parts = {"value": value, "low": value - 5, "high": value + 10}
    return xr.Dataset({name: (dims, part) for name, part in parts.items()}, coords)


@WIDTHS
def test_changes_are_points_with_intervals_in_the_rows_of_their_task(width):
    figure = forest({"a": changes(), "b": changes()}, band=10.0, label="change (%)", series_of=LENSES, width=width)
    check_filled(figure, width)
    panel = figure.axes[0]
    assert [container.get_label() for container in panel.containers] == list(LENSES)
    line, _, (bars,) = panel.containers[0]
    np.testing.assert_array_equal(line.get_xdata(), changes()["value"].sel(lens="effective").values.ravel())
    (left, y), (right, _) = bars.get_segments()[0]
    assert right - left == pytest.approx(15)
    labels = [label.get_text() for label in panel.get_yticklabels()]
    assert labels == [*MODELS, *TASKS * 3]
    rows = dict(zip(panel.get_yticks(), labels, strict=True))
    assert rows[round(y + 0.15)] == "RTE"  # the first of two series is a little above the middle of its row


@WIDTHS
def test_panels_below_each_other_are_labelled_once(width):
    panels = {f"panel {number}": changes() for number in range(5)}
    figure = forest(panels, band=10.0, label="change (%)", series_of=LENSES, width=width)
    assert find_faults(figure, "svg") == []
    rows = {round(panel.get_position().y0, 2) for panel in figure.axes}
    assert len(rows) == (3 if width < 4 else 2)
    assert sum(bool(panel.get_xticklabels()) for panel in figure.axes) == (2 if width < 4 else 4)


def test_a_change_beyond_the_edge_is_an_arrow():
    far = changes(3 * LONGEST)
    far["high"][0, 0, 0] = 2 * LONGEST  # its value is within the edge
    figure = forest({"a": far}, band=10.0, label="", series_of=LENSES)
    arrows = [line for line in figure.axes[0].lines if line.get_marker() == ">" and len(line.get_xdata())]
    assert figure.axes[0].get_xlim()[1] == pytest.approx(1.06 * LONGEST)
    assert sum(len(line.get_xdata()) for line in arrows) == int((far["high"] > 1.06 * LONGEST).sum())


def lines(points=4):
    tasks = np.random.default_rng(0).random((2, 2, points))
    coords = {"task": TASKS, "lens": list(LENSES), "layer": range(points)}
    return xr.Dataset({"tasks": (("task", "lens", "layer"), tasks), "mean": (("lens", "layer"), tasks.mean(0))}, coords)


@WIDTHS
@pytest.mark.parametrize("stacked", [False, True])
def test_lines_have_their_mean_every_task_and_a_mark(width, stacked):
    kinds = xr.DataArray([[0.5, 0.5]] * 4, {"layer": range(4), "kind": ["cls", "word"]}, ("layer", "kind"))
    shares = dict.fromkeys(MODELS, kinds) if stacked else None
    panels, marks = dict.fromkeys(MODELS, lines()), {MODELS[0]: (1.5, "d = 32")}
    figure = trends(
        panels, x="layer", labels=("layer", "weight"), series_of=LENSES, marks=marks, shares=shares, width=width
    )
    check_filled(figure, width)
    first = next(axes for axes in figure.axes if axes.get_title() == MODELS[0])
    assert [text.get_text() for text in first.texts] == ["d = 32"]
    named = [line for line in first.lines if line.get_label() in LENSES]
    np.testing.assert_array_equal(named[1].get_ydata(), lines()["mean"].sel(lens="paper").values)
    assert len(first.lines) == 2 * (1 + len(TASKS)) + 1
    assert sum(bool(axes.patches) for axes in figure.axes) == (3 if stacked else 0)
