"""How estimates are drawn."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.estimate import Estimate
from headscope.plotting import series

VALUES = xr.Dataset({"value": ("x", [0.2, 0.5]), "low": ("x", [0.1, 0.3]), "high": ("x", [0.4, 0.6])})


def open_axes():
    return Figure().subplots()


def draw_estimates(data=VALUES, **options):
    ax = open_axes()
    series.draw_estimates(ax, Estimate.from_fields(data), [0, 1], series.STYLES[0], **options)
    return ax


def intervals(ax, along):
    return [segment[:, along].tolist() for segment in ax.collections[-1].get_segments()]


@pytest.mark.parametrize("kind", ["points", "line", "bars"])
def test_intervals_are_lines_from_end_to_end(kind):
    np.testing.assert_allclose(intervals(draw_estimates(kind=kind), along=1), [[0.1, 0.4], [0.3, 0.6]])


def test_values_may_be_along_x():
    ax = draw_estimates(along="x")
    np.testing.assert_allclose(intervals(ax, along=0), [[0.1, 0.4], [0.3, 0.6]])
    assert ax.lines[0].get_xdata().tolist() == [0.2, 0.5]


def test_the_interval_of_a_line_may_be_a_band():
    corners = draw_estimates(kind="band").collections[0].get_paths()[0].vertices
    assert corners[corners[:, 0] == 0, 1].min() == 0.1
    assert corners[corners[:, 0] == 1, 1].max() == 0.6


@pytest.mark.parametrize("kind", ["points", "line", "band", "bars"])
def test_values_without_an_interval_are_drawn_alone(kind):
    assert not draw_estimates(VALUES[["value"]], kind=kind).collections


def test_points_that_are_not_filled_are_hollow():
    points, hollow = draw_estimates(filled=np.array([True, False])).lines
    assert (hollow.get_xdata(), hollow.get_markerfacecolor()) == ([1], "#ffffff")
    assert hollow.get_zorder() > points.get_zorder()  # it is drawn over the filled one


def test_a_bar_without_a_value_is_a_dash():
    ax = draw_estimates(VALUES.where(VALUES["value"] > 0.3), kind="bars")
    assert [(text.get_text(), text.get_position()) for text in ax.texts] == [("–", (0.0, 0))]


def test_series_are_spread_around_the_middle_of_their_group():
    np.testing.assert_allclose(series.spread_series(3, 0.2), [-0.2, 0, 0.2])
