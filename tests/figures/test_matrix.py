import numpy as np
import pytest
from matplotlib.figure import Figure

from headscope.core.errors import InputError, UnknownName
from headscope.plotting.draw import draw
from headscope.plotting.fonts import TokenFormatter
from tests.figures.data import dataset


def image(figure: Figure):
    return figure.axes[0].images[0]


def test_rows_are_queries_and_columns_are_keys():
    data = dataset()
    shown = image(draw(data, "matrix", layer=1, head=2)).get_array()
    assert np.allclose(shown, data["weights"].sel(lens="raw", layer=1, head=2))


def test_raw_attention_starts_at_zero():
    assert image(draw(dataset(), "matrix", lens="raw")).get_clim()[0] == 0


def test_signed_maps_have_zero_in_the_middle():
    low, high = image(draw(dataset(), "matrix", lens="effective")).get_clim()
    assert low == -high


def test_masked_cells_are_hatched_and_not_zero():
    drawn = draw(dataset(causal=True), "matrix").axes[0]
    assert np.ma.getmaskarray(drawn.images[0].get_array()).sum() == 3
    assert any(patch.get_hatch() for patch in drawn.patches)


def test_the_title_names_lens_layer_and_head():
    assert draw(dataset(), "matrix:layer=1,head=2,lens=effective").axes[0].get_title() == "effective · L1H2"


def test_special_tokens_are_bold():
    labels = draw(dataset("[CLS] cat"), "matrix").axes[0].get_yticklabels()
    assert [label.get_fontweight() for label in labels] == ["bold", "normal"]


def test_every_token_of_a_long_text_is_labelled_and_the_figure_grows():
    long = draw(dataset(" ".join(["word"] * 128), layers=1, heads=1), "matrix")
    axes = long.axes[0]
    assert len(axes.get_yticks()) == 128
    assert isinstance(axes.yaxis.get_major_formatter(), TokenFormatter)
    assert axes.get_yticklabels()[0].get_fontsize() > 6
    assert long.get_figwidth() > draw(dataset(), "matrix").get_figwidth()


def test_a_very_long_text_has_labels_for_some_tokens():
    axes = draw(dataset(" ".join(["w"] * 1500), layers=1, heads=1), "matrix").axes[0]
    assert len(axes.get_yticks()) < 1500


def test_size_is_the_width_in_inches():
    assert draw(dataset(), "matrix", size=5.0).get_figwidth() == pytest.approx(5.0)


def test_numbers_are_printed_on_request():
    texts = [text.get_text() for text in draw(dataset("a"), "matrix", numbers=True).axes[0].texts]
    assert texts == ["1.00"]


def test_an_unknown_layer_raises_an_error():
    with pytest.raises(InputError, match=r"There is no layer 7 in this data: it has layers 0, 1\."):
        draw(dataset(), "matrix", layer=7)


def test_an_unknown_head_raises_an_error():
    with pytest.raises(InputError, match=r"There is no head 9 in this data: it has heads 0 to 2\."):
        draw(dataset(), "matrix", head=9)


def test_an_unknown_lens_raises_an_error():
    with pytest.raises(UnknownName, match=r"No lens in this data is called 'efective'. Did you mean 'effective'\?"):
        draw(dataset(), "matrix", lens="efective")


def test_a_size_that_is_too_narrow_raises_an_error():
    with pytest.raises(
        InputError, match=r"size=1 inches is too narrow for the labels of this figure. Give a larger size."
    ):
        draw(dataset(), "matrix", size=1.0)


def test_data_without_maps_raises_an_error():
    with pytest.raises(InputError, match="needs the variable 'weights', but the data has 'share'"):
        draw(dataset()[["share"]], "matrix")


def test_an_unknown_scale_raises_an_error():
    with pytest.raises(InputError, match="The parameter 'scale' of 'matrix' must be linear or root, but got 'log'"):
        draw(dataset(), "matrix", scale="log")
