import numpy as np
import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.plotting.draw import draw
from tests.figures.data import measured


def medians(figure):
    return [float(line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() == "o"]


def test_each_example_counts_once_for_each_layer_and_lens():
    data = measured(examples=9)
    wanted = data["entropy_rows"].mean("head").median("example").sel(site="self")
    assert np.allclose(medians(draw(data, "distribution")), wanted.values.ravel())


def test_violins_can_be_drawn_along_other_axes():
    data = measured(examples=9)
    figure = draw(data, "distribution", variable="token_types", along="type", at="layer=1")
    wanted = data["token_types_rows"].sel(layer=1, site="self").mean("head").median("example")
    assert np.allclose(medians(figure), wanted.values.ravel())
    assert [each.get_text() for each in figure.axes[0].get_xticklabels()] == ["noun", "verb", "sep"]


def test_only_few_examples_are_also_dots():
    few, more = (draw(measured(examples=each, lenses=["raw"]), "distribution") for each in (9, 50))
    assert sum(line.get_marker() == "." for line in few.axes[0].lines) == 2
    assert not any(line.get_marker() == "." for line in more.axes[0].lines)


def test_the_caption_describes_the_value_of_an_example():
    label = draw(measured(), "distribution").axes[0].get_xlabel().replace("\n", " ")
    assert label == "layer 7 examples, each its mean over 3 heads. Dot: median; bar: the middle half."


@pytest.mark.parametrize("examples", [1, 2])
def test_one_or_two_examples_are_drawn_without_a_violin(examples):
    assert len(medians(draw(measured(examples=2).isel(example=slice(examples)), "distribution"))) == 4


def test_no_value_at_all_is_a_dash_and_equal_values_are_a_line():
    data = measured()
    data["entropy_rows"][:, 0, :, 0] = np.nan
    data["entropy_rows"][:, 0, :, 1] = 1.0
    assert [text.get_text() for text in draw(data, "distribution").axes[0].texts] == ["–"]


def test_without_rows_it_says_how_to_measure_them():
    with pytest.raises(InputError, match=r"needs the value of every example, 'entropy_rows', .* with rows=True"):
        draw(measured(rows=False), "distribution")


def test_an_unknown_axis_raises_an_error():
    with pytest.raises(UnknownName, match="No axis of 'entropy' is called 'type'"):
        draw(measured(), "distribution", along="type")
