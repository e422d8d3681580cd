import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from headscope.core.errors import InputError, UnknownName
from headscope.plotting import theme
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


def test_a_long_text_fits_a_page_and_the_axes_say_how_many_tokens_are_labelled():
    long = draw(dataset(" ".join(["word"] * 128), layers=1, heads=1), "matrix")
    axes = long.axes[0]
    assert (long.get_size_inches() <= theme.PAGE).all()
    assert isinstance(axes.yaxis.get_major_formatter(), TokenFormatter)
    step = axes.get_yticks()[1]
    assert axes.get_ylabel() == f"query: attends (1 of {step} labelled)"
    assert axes.get_xlabel() == f"key: attended to (1 of {step} labelled)"
    assert long.get_figwidth() > draw(dataset(), "matrix").get_figwidth()


def test_every_token_of_a_long_text_is_labelled_in_a_large_figure():
    axes = draw(dataset(" ".join(["word"] * 128), layers=1, heads=1), "matrix", size=16.0).axes[0]
    assert len(axes.get_yticks()) == 128
    assert axes.get_yticklabels()[0].get_fontsize() > 6


def one_dominant_key() -> xr.Dataset:
    """Return a map whose last key takes 95 % of each row; the other weights fall by tenths."""
    data = dataset("a b c [SEP]", layers=1, heads=1).isel(lens=[0])
    weights = np.tile([0.04, 0.009, 0.001, 0.95], (4, 1))
    return data.assign(weights=(data["weights"].dims, weights[None, None, None].astype("float32")))


def test_where_one_key_dominates_a_logarithmic_scale_on_request_shows_small_weights():
    axes = draw(one_dominant_key(), "matrix", scale="log").axes[0]
    shown = axes.images[0]
    shades = [theme.luminance(shown.cmap(shown.norm(weight))) for weight in (0.95, 0.04, 0.009, 0.001)]
    assert (np.diff(shades) > 0.04).all()  # luminance from 0 to 1; on the linear scale 0.009 and 0.001 differ by 0.01
    label = " ".join(axes.child_axes[0].get_ylabel().split())
    assert label == "attention weight (logarithmic colour scale; white: below 0.001)"


def colours_of(figure: Figure, panel: int = 0) -> np.ndarray:
    """Return the colour in which each weight of a panel is drawn."""
    shown = [ax for ax in figure.axes if ax.images][panel].images[0]
    return shown.cmap(shown.norm(shown.get_array()))


def with_a_sink() -> xr.Dataset:
    """Return 20 tokens whose last key takes half of every row, 10 times as much as any effective weight."""
    data = dataset(" ".join("abcdefghijklmnopqrst"), layers=1, heads=1)
    effective = np.random.default_rng(0).normal(0, 0.02, (20, 20))
    raw = np.abs(effective)
    raw[:, -1] = 0.5
    weights = np.stack([raw, effective])[:, None, None].astype("float32")
    return data.assign(weights=(data["weights"].dims, weights))


def test_a_weight_has_the_same_colour_in_matrix_and_in_compare():
    data = with_a_sink()
    alone = colours_of(draw(data, "matrix", lens="effective"))
    assert np.array_equal(alone, colours_of(draw(data, "compare"), panel=1))
    assert np.array_equal(alone, colours_of(draw(data.isel(lens=[1]), "matrix")))


@pytest.mark.parametrize("scale", ["linear", "root"])
def test_with_one_limit_raw_weights_have_the_same_colour_alone_and_beside_signed_ones(scale):
    data, look = with_a_sink(), {"limit": 0.1, "scale": scale}
    alone, beside = colours_of(draw(data, "matrix", **look)), colours_of(draw(data, "compare", **look))
    assert np.allclose(alone, beside, atol=0.02)  # two shades of 256


def test_small_negative_weights_do_not_look_strong():
    data = with_a_sink()
    weights = data["weights"].sel(lens="effective").values[0, 0]
    painted = colours_of(draw(data, "matrix", lens="effective"))
    small = (weights < 0) & (weights > -0.1 * np.abs(weights).max())
    assert small.any()
    assert min(theme.luminance(colour) for colour in painted[small]) > 0.8


def test_the_colour_bar_says_where_the_scale_ends_and_how_many_cells_are_beyond():
    bar = draw(with_a_sink(), "matrix", lens="effective").axes[0].child_axes[0]
    assert " ".join(bar.get_ylabel().split()) == (
        "effective attention (scale ends at the 99.5 % quantile, ±0.062; 1 cell is beyond)"
    )


def test_a_limit_ends_the_scale():
    shown = draw(with_a_sink(), "matrix:limit=0.2,scale=linear")
    assert image(shown).get_clim() == (0, 0.2)
    bar = shown.axes[0].child_axes[0]
    assert " ".join(bar.get_ylabel().split()) == "attention weight (scale ends at limit=0.2; 20 cells are beyond)"


def test_a_limit_that_is_not_positive_raises_an_error():
    with pytest.raises(
        InputError, match=r"limit is the weight at which colors end, so it must be above 0, but got 0\."
    ):
        draw(dataset(), "matrix", limit=0.0)


def test_even_weights_have_a_linear_scale():
    axes = draw(dataset(), "matrix").axes[0]
    assert type(axes.images[0].norm) is Normalize
    assert axes.child_axes[0].get_ylabel() == "attention weight"


@pytest.mark.parametrize(("scale", "words"), [("root", "square-root"), ("log", "logarithmic")])
def test_the_colour_bar_names_a_chosen_scale(scale, words):
    for lens in ("raw", "effective"):
        bar = draw(dataset(), "matrix", scale=scale, lens=lens).axes[0].child_axes[0]
        assert f"({words} colour scale" in " ".join(bar.get_ylabel().split())


def test_effective_attention_alone_says_where_it_is_the_same_as_raw_attention():
    sentence = "3 tokens, rank 3: all of this attention reaches the output, so effective attention is the same as raw"
    equal, other = dataset(shares=np.ones((2, 3))).isel(lens=[1]), dataset().isel(lens=[1])
    for name in ("matrix", "head_grid"):
        assert sentence in " ".join(draw(equal, name).get_supxlabel().split())
        assert draw(other, name).get_supxlabel() == ""
    mixed = dataset(shares=[[1.0, 0.5, 0.5], [0.5, 0.5, 0.5]]).isel(lens=[1])
    assert sentence in " ".join(draw(mixed, "matrix", layer=0, head=0).get_supxlabel().split())
    assert draw(mixed, "head_grid").get_supxlabel() == ""


def test_size_is_the_width_in_inches():
    assert draw(dataset(), "matrix", size=5.0).get_figwidth() == pytest.approx(5.0)


def test_numbers_are_printed_on_request():
    texts = [text.get_text() for text in draw(dataset("a"), "matrix", numbers=True).axes[0].texts]
    assert texts == ["1.00"]


def test_numbers_that_are_too_small_to_read_raise_an_error():
    with pytest.raises(InputError, match=r"numbers=True cannot be read here: 30 × 30 weights need a wider figure\."):
        draw(dataset(" ".join(["w"] * 30)), "matrix", numbers=True, size=3.3)


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
    with pytest.raises(
        InputError, match="The parameter 'scale' of 'matrix' must be linear, root or log, but got 'cube'"
    ):
        draw(dataset(), "matrix", scale="cube")
