import numpy as np
import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.plotting.draw import draw
from headscope.results.summarize import summarize_rows
from tests.figures.data import measured


def heights(figure):
    return [bar.get_height() for bar in figure.axes[0].patches]


def error_bars(figure):
    return [[part[:, 1].tolist() for part in each.get_segments()] for each in figure.axes[0].collections]


def labels(figure):
    return [each.get_text() for each in figure.axes[0].get_xticklabels()]


def test_a_bar_is_the_mean_over_heads_for_each_layer_and_lens():
    data = measured()
    assert np.allclose(heights(draw(data, "bars")), data["entropy"].mean("head").values.ravel())
    assert labels(draw(data, "bars")) == ["L0", "L1"]


def test_a_variable_with_an_axis_of_its_own_is_drawn_along_it():
    data = measured()
    figure = draw(data, "bars", variable="token_types")
    assert labels(figure) == ["noun", "verb", "sep"]
    assert np.allclose(heights(figure), data["token_types"].mean(("layer", "head")).values.ravel())


def test_with_rows_error_bars_are_the_interval_of_the_mean_over_heads():
    data = measured()
    wanted = summarize_rows(data["entropy_rows"].mean("head"))
    ends = np.stack([wanted["low"].isel(lens=0).values.ravel(), wanted["high"].isel(lens=0).values.ravel()], -1)
    assert np.allclose(error_bars(draw(data, "bars"))[0], ends)


def test_without_rows_error_bars_are_an_upper_bound_and_the_caption_says_so():
    data = measured(examples=50)
    without = data.drop_dims("example")
    exact, bound = (np.ptp(error_bars(draw(each, "bars"))[0], axis=1) for each in (data, without))
    assert (bound >= exact).all()
    assert "at most this wide" in draw(without, "bars").axes[0].get_xlabel().replace("\n", " ")
    assert "at most" not in draw(data, "bars").axes[0].get_xlabel()


def test_one_head_has_its_own_interval():
    data = measured()
    figure = draw(data, "bars", at="head=1", lens="raw")
    cell = data.sel(lens="raw", site="self", head=1)
    assert np.allclose(error_bars(figure)[0], np.stack([cell["entropy_low"], cell["entropy_high"]], -1))
    assert figure.axes[0].get_title("left") == "raw · entropy by layer · head 1"


def test_the_caption_has_the_count():
    label = draw(measured(), "bars").axes[0].get_xlabel().replace("\n", " ").replace("\u00a0", " ")
    assert label == "layer Mean over 3 heads. Error bars: 95 % interval over examples (n = 7)."


def test_lenses_differ_in_colour_and_hatch():
    handles = draw(measured(lenses=("raw", "effective", "norm")), "bars").axes[0].get_legend().get_patches()
    assert len({each.get_facecolor() for each in handles}) == len({each.get_hatch() for each in handles}) == 3


def test_a_missing_value_is_a_dash():
    data = measured(rows=False)
    data["entropy"][:, :, 1] = np.nan
    assert [text.get_text() for text in draw(data, "bars").axes[0].texts] == ["–", "–"]


def test_invalid_choices_raise_an_error():
    with pytest.raises(UnknownName, match="No axis of 'entropy' is called 'type'"):
        draw(measured(), "bars", along="type")
    with pytest.raises(InputError, match=r"also has type \(noun, verb and sep\)\. Choose with at='type=noun'"):
        draw(measured(), "bars", variable="token_types", along="layer")
    with pytest.raises(InputError, match=r"There are 8 lenses, but only 7 can be told apart in one figure"):
        draw(measured(lenses=[f"lens{each}" for each in range(8)]), "bars")


def test_a_variables_own_unit_is_shown_once():
    data = measured()
    assert draw(data, "bars").axes[0].get_ylabel() == "entropy (nats)"
    data["entropy"].attrs["units"] = "bits"
    assert draw(data, "bars").axes[0].get_ylabel() == "entropy (bits)"
    data["entropy"].attrs["long_name"] = "surprise"
    assert draw(data, "bars").axes[0].get_ylabel() == "surprise (bits)"
