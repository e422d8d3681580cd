import numpy as np
import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.figures.head_grid import max_pool
from headscope.plotting.draw import draw
from headscope.plotting.head_cells import format_numbers
from tests.figures.data import dataset, measured


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_layers_are_rows_and_heads_are_columns():
    axes = draw(dataset(), "head_grid").axes[0]
    assert labels(axes.yaxis) == ["L0", "L1"]
    assert labels(axes.xaxis) == ["H0", "H1", "H2"]


def test_a_value_is_printed_for_every_head():
    axes = draw(dataset(shares=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]), "head_grid", colour="share").axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.10", "0.20", "0.30", "0.40", "0.50", "0.60"]


def test_the_value_comes_from_the_lens_that_has_it():
    assert draw(dataset(), "head_grid", colour="share").axes[0].get_title() == "effective · share of every head"


def test_numbers_that_would_be_too_small_are_left_out():
    data = dataset("a b", layers=32, heads=32)
    assert len(draw(data, "head_grid", colour="share").axes[0].texts) == 32 * 32
    assert not draw(data, "head_grid", colour="share", size=5.0).axes[0].texts


def test_pooling_keeps_the_largest_weight_and_its_sign():
    weights = np.zeros((1, 1, 200, 200))
    weights[0, 0, 150, 30] = -1.0
    small = max_pool(weights)
    assert small.shape == (1, 1, 64, 64)
    assert small.min() == -1.0
    assert (small != 0).sum() == 1


def test_pooling_ignores_masked_cells_unless_all_are_masked():
    assert max_pool(np.array([[np.nan, 0.5], [np.nan, np.nan]]), pixels=1) == 0.5
    assert np.isnan(max_pool(np.full((2, 2), np.nan), pixels=1)).all()


def test_integers_have_no_decimals_and_tiny_numbers_an_exponent():
    assert format_numbers(np.array([[3.0, np.nan]])) == [["3", "–"]]
    assert format_numbers(np.array([[2.5e-7]])) == [["2.5e-07"]]
    assert format_numbers(np.array([[np.nan]])) == [["–"]]


def test_small_numbers_have_three_decimals_and_a_typographic_minus():
    assert format_numbers(np.array([[0.0124, -0.03, -0.0001]])) == [[".012", "−.030", ".000"]]
    assert format_numbers(np.array([[1.5, -0.001, -2.0]])) == [["1.50", "0.00", "−2.00"]]
    assert format_numbers(np.array([[123.45, 1.0]])) == [["123.5", "1.0"]]


def test_an_unknown_value_raises_an_error():
    with pytest.raises(
        UnknownName, match=r"No value of every head in this data is called 'shear'. Did you mean 'share'"
    ):
        draw(dataset(), "head_grid", colour="shear")


def test_a_size_that_is_too_narrow_raises_an_error():
    with pytest.raises(
        InputError, match=r"size=0.4 inches is too narrow for the labels of this figure. Give a larger size."
    ):
        draw(dataset(), "head_grid", size=0.4)


def test_a_measured_result_is_coloured_by_a_variable():
    data = measured()
    axes = draw(data, "head_grid", colour="distance", lens="effective").axes[0]
    assert np.allclose(axes.images[0].get_array(), data["distance"].sel(lens="effective", site="self"))
    assert axes.get_title() == "effective · distance of every head"


def test_a_measured_result_without_a_colour_shows_its_first_variable():
    assert draw(measured(), "head_grid").axes[0].get_title() == "raw · entropy of every head"


def test_a_variable_with_a_further_axis_refers_to_the_figure_heads():
    with pytest.raises(InputError, match=r"also has type \(noun, verb and sep\)\. Draw 'heads', with at='type=noun'\."):
        draw(measured(), "head_grid", colour="token_types")


def test_patterns_have_the_letter_of_the_most_frequent_class():
    data = measured(types=("vertical", "vertical_diagonal", "block")).rename(type="pattern", token_types="patterns")
    data["patterns"][0, 0, 1, 2] = np.nan
    axes = draw(data, "head_grid", colour="patterns", lens="raw").axes[0]
    table = data["patterns"].isel(lens=0, site=0).values
    letters = np.array(["V", "V+D", "B"])[np.nan_to_num(table).argmax(-1)]
    letters[1, 2] = "–"
    assert [text.get_text() for text in axes.texts] == letters.ravel().tolist()
    assert axes.get_title() == "raw · patterns of every head"


def test_a_grid_of_one_class_says_so():
    data = measured(types=("vertical", "vertical_diagonal", "block")).rename(type="pattern", token_types="patterns")
    data["patterns"][:] = [1.0, 0.0, 0.0]
    title = draw(data, "head_grid", colour="patterns").axes[0].get_title()
    assert " ".join(title.split()) == "raw · patterns of every head: all vertical"
