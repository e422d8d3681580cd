"""Grids of panels over two dimensions."""

import numpy as np
import pytest
import xarray as xr

from headscope.plotting import facets, theme
from tests.figures.layout import find_faults

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
    assert sum(len(axes.child_axes) for axes in panels) + len(figure.axes) - len(panels) == bars
    limits = {axes.images[0].norm.vmax for axes in panels}
    assert len(limits) == bars


@pytest.mark.parametrize("width", [3.3, 6.9])
@pytest.mark.parametrize("tasks", [1, 2])
def test_heat_maps_fill_the_width_and_nothing_is_cut(width, tasks):
    table = heads().isel(task=slice(tasks))
    label = "a label that is far too long for one line of a colour bar"
    figure = facets.heat_facets(table, rows="lens", columns="task", y="layer", label=label, width=width)
    check_filled(figure, width)
    assert len({axes.get_position().y0 for axes in figure.axes if axes.images}) == (1 if tasks == 1 else 3)


@pytest.mark.parametrize("tokens", [5, 60, 90])
@pytest.mark.parametrize("rows", [None, 3])
def test_maps_fill_the_width_and_all_of_their_tokens_are_named(tokens, rows):
    names = ["[CLS]", *(f"word{index}" for index in range(tokens - 1))]
    weights = np.random.default_rng(0).normal(size=(2, 1, 1, tokens, tokens))
    dims = ("lens", "layer", "head", "query", "key")
    coords = {"lens": ["raw", "effective"], "layer": [0], "head": [0]}
    tokens_of = {f"{side}_token": (side, names) for side in ("query", "key")}
    maps = xr.Dataset({"weights": (dims, weights)}, {**coords, **tokens_of})
    figure = facets.stacked_maps(maps, last_rows=rows)
    check_filled(figure, None if tokens == 5 else max(6.9, figure.get_size_inches()[0]))
    assert len(figure.axes[0].get_xticks()) == tokens


@pytest.mark.parametrize("tokens", [5, 14, 40])
def test_rows_of_two_texts_and_their_scale_are_not_cut(tokens):
    weights = np.random.default_rng(0).exponential(size=(2, 3, 6, tokens))
    lenses = ["raw", "rollout", "flow"]
    table = xr.DataArray(weights, {"lens": lenses, "layer": range(6)}, ("version", "lens", "layer", "token"))
    names = [[f"word{index}" for index in range(tokens)]] * 2
    figure = facets.row_facets(table, names, ["before", "after"], label="share of the row")
    assert find_faults(figure) == []


def check_filled(figure, width):
    """Nothing of a figure is outside of it, and little of its width is empty."""
    figure.draw_without_rendering()
    with theme.apply():
        box = figure.get_tightbbox()
    wide, high = figure.get_size_inches()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= wide
    assert box.y1 <= high
    if width is not None:
        assert wide == pytest.approx(width, rel=0.02)
        assert box.width > 0.9 * wide


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


def test_labels_are_left_out_only_above_the_same_labels():
    table = {"same": {"a": points()}, "above": {"a": points()}, "fewer": {"a": points().isel(length=[0])}}
    figure = facets.interval_facets(table, x="length")
    labels = [[label.get_text() for label in panel.get_xticklabels()] for panel in figure.axes]
    named = [str(length) for length in points()["length"].values]
    assert len(named) > 1
    assert not any(labels[0])
    assert labels[1:] == [named, named[:1]]


@pytest.mark.parametrize("tasks", [1, 2])
def test_shares_are_stacked_by_task_or_all_in_one_panel(tasks):
    shares = xr.DataArray(
        np.full((tasks, 3, 2), 0.5),
        {"task": COORDS["task"][:tasks], "lens": COORDS["lens"], "pattern": ["vertical", "block"]},
        ("task", "lens", "pattern"),
    )
    figure = facets.stacked_shares(shares, along="task", label="share of maps")
    assert len([axes for axes in figure.axes if axes.patches]) == (1 if tasks == 1 else 3)


def name_places(labels, width=6.9):
    """Return the labels along x of a panel that has these, as they are drawn."""
    value = xr.DataArray(np.zeros((1, len(labels))), {"lens": ["raw"], "layer": labels}, ("lens", "layer"))
    table = {"weight": {"RTE": xr.Dataset({"value": value, "low": value, "high": value})}}
    figure = facets.interval_facets(table, x="layer", lines=True, width=width)
    assert find_faults(figure) == []
    return figure.axes[0].get_xticklabels()


def test_numbers_that_would_overlap_are_left_out():
    few, many = name_places(range(12)), name_places(range(144))
    assert [label.get_text() for label in few] == [str(layer) for layer in range(12)]
    assert [int(label.get_text()) for label in many] == list(range(0, 144, int(many[1].get_text())))
    assert 1 < len(many) < 144
    assert {label.get_rotation() for label in (*few, *many)} == {0}


def test_words_are_all_written_and_turned_where_they_would_overlap():
    few, many = name_places(["first", "second"]), name_places([f"relation {at}" for at in range(20)])
    assert (len(few), len(many)) == (2, 20)
    assert {label.get_rotation() for label in few} == {0}
    assert {label.get_rotation() for label in many} == {40}


def test_labels_of_places_are_large_enough_for_print():
    labels = (*name_places(range(144), width=3.3), *name_places([f"relation {at}" for at in range(20)]))
    assert min(label.get_fontsize() for label in labels) >= 7
