"""Grids of panels over two dimensions."""

import numpy as np
import pytest
import xarray as xr

from headscope.plotting import facets

COORDS = {"task": ["RTE", "QNLI"], "lens": ["raw", "effective", "paper"], "layer": range(2), "head": range(4)}


def heads():
    values = np.random.default_rng(0).normal(size=(2, 3, 2, 4))
    return xr.DataArray(values, COORDS, ("task", "lens", "layer", "head"))


@pytest.mark.parametrize(("scale", "bars"), [("figure", 1), ("row", 3)])
def test_heat_maps_have_a_panel_for_each_pair_and_a_colour_bar_for_each_scale(scale, bars):
    figure = facets.heat_facets(heads(), rows="lens", columns="task", y="layer", label="w", signed=True, scale=scale)
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 6
    assert [axes.get_title() for axes in panels[:2]] == ["RTE", "QNLI"]
    assert [axes.get_ylabel() for axes in panels[::2]] == ["raw", "effective", "paper"]
    assert sum(len(axes.child_axes) for axes in panels) == bars
    limits = {axes.images[0].norm.vmax for axes in panels}
    assert len(limits) == bars


def points():
    value = heads().isel(layer=0, head=0, drop=True).rename(task="length")
    return xr.Dataset({"value": value, "low": value - 0.1, "high": value + 0.2})


@pytest.mark.parametrize("lines", [False, True])
def test_every_series_has_a_point_with_its_interval_in_every_panel(lines):
    table = {"weight": {"RTE": points(), "QNLI": points()}, "share": {"RTE": points(), "QNLI": points()}}
    figure = facets.interval_facets(table, x="length", label="tokens", lines=lines)
    assert len(figure.axes) == 4
    for panel in figure.axes:
        assert [container.get_label() for container in panel.containers] == ["raw", "effective", "paper"]
    line, _, (bars,) = figure.axes[0].containers[0]
    assert line.get_ydata().tolist() == points()["value"].sel(lens="raw").values.tolist()
    low, high = bars.get_segments()[0][:, 1]
    assert high - low == pytest.approx(0.3)
    assert figure.get_supxlabel() == "tokens"


@pytest.mark.parametrize("tasks", [1, 2])
def test_shares_are_stacked_by_task_or_all_in_one_panel(tasks):
    shares = xr.DataArray(
        np.full((tasks, 3, 2), 0.5),
        {"task": COORDS["task"][:tasks], "lens": COORDS["lens"], "pattern": ["vertical", "block"]},
        ("task", "lens", "pattern"),
    )
    figure = facets.stacked_shares(shares, along="task", label="share of maps")
    assert len([axes for axes in figure.axes if axes.patches]) == (1 if tasks == 1 else 3)
