import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.plotting.draw import draw
from headscope.results.summarize import summarize_rows
from tests.figures.data import measured


def lines(figure):
    return [
        line for line in figure.axes[0].lines if len(line.get_xdata()) > 1 and line.get_marker() not in ("", "None")
    ]


def test_a_line_is_the_mean_over_heads_from_layer_to_layer():
    data = measured(layers=4)
    drawn = lines(draw(data, "curve"))
    for line, wanted in zip(drawn, data["entropy"].mean("head"), strict=True):
        assert line.get_xdata().tolist() == [0, 1, 2, 3]
        assert np.allclose(line.get_ydata(), wanted.values.ravel())


def test_lenses_differ_in_colour_line_and_mark():
    drawn = lines(draw(measured(layers=4, lenses=("raw", "effective", "norm")), "curve"))
    assert len({line.get_color() for line in drawn}) == 3
    assert len({str(line._unscaled_dash_pattern) for line in drawn}) == 3
    assert len({line.get_marker() for line in drawn}) == 3


def test_every_head_is_a_dot_unless_heads_is_false():
    dots = draw(measured(layers=4), "curve").axes[0].collections
    assert sum(len(each.get_offsets()) for each in dots if len(each.get_offsets()) > 1) == 2 * 4 * 3
    without = draw(measured(layers=4), "curve", heads=False)
    assert not any(len(each.get_offsets()) > 1 for each in without.axes[0].collections)
    assert "Dots" not in without.axes[0].get_xlabel()


def test_the_band_is_the_interval_of_the_mean():
    data = measured(layers=4, lenses=("raw",))
    wanted = summarize_rows(data["entropy_rows"].mean("head"))
    band = draw(data, "curve", heads=False).axes[0].collections[0].get_paths()[0].vertices
    for layer in range(4):
        edge = band[band[:, 0] == layer, 1]
        assert edge.min() == pytest.approx(float(wanted["low"][0, 0, layer]))
        assert edge.max() == pytest.approx(float(wanted["high"][0, 0, layer]))


def test_a_gap_in_the_layers_leaves_a_gap_in_the_line():
    data = measured(layers=4, rows=False)
    data["entropy"][:, :, 2] = np.nan
    assert np.isnan(lines(draw(data, "curve"))[0].get_ydata()).tolist() == [False, False, True, False]


def test_one_layer_is_drawn_as_dots():
    assert draw(measured(layers=1), "curve").axes[0].get_title("left") == "entropy by layer"


def test_an_axis_without_a_selection_raises_an_error():
    with pytest.raises(InputError, match=r"'curve' cannot show every axis of 'token_types'.*at='type=noun'"):
        draw(measured(), "curve", variable="token_types")
