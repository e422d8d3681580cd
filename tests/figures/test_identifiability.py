import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.plotting import theme
from headscope.plotting.draw import draw
from tests.figures.data import dataset, intervals


def bars(figure):
    return [patch for patch in figure.axes[0].patches if patch.get_height() < 1]


def marks(figure, marker):
    return next(line for line in figure.axes[0].lines if line.get_marker() == marker)


def test_a_bar_goes_from_the_least_to_the_greatest_weight():
    data = intervals()
    for bar, least, greatest in zip(bars(draw(data, "identifiability")), data["least"], data["greatest"], strict=True):
        assert bar.get_x() == pytest.approx(float(least))
        assert bar.get_x() + bar.get_width() == pytest.approx(float(greatest))


def test_raw_and_effective_weights_are_marked_in_their_rows():
    data = intervals()
    drawn = draw(data, "identifiability")
    assert np.allclose(marks(drawn, "o").get_xdata(), data["raw"])
    assert np.allclose(marks(drawn, "D").get_xdata(), data["effective"])
    assert marks(drawn, "o").get_ydata().tolist() == [0, 1, 2]


def test_no_mark_is_cut_off_on_either_scale():
    for scale in ("root", "linear"):
        low, high = draw(intervals(), "identifiability", scale=scale).axes[0].get_xlim()
        assert low < -0.07 < 0.467 < high


def test_the_title_names_the_head_and_the_query():
    assert draw(intervals(), "identifiability").axes[0].get_title("left") == "identifiability · L3H7 · query 0: the"


def test_intervals_wider_than_their_weight_are_counted():
    data = intervals()
    data["greatest"][0] += 0.1
    assert "For 1 of 3 keys the interval is wider" in draw(data, "identifiability").axes[0].get_xlabel()


def test_a_determined_row_is_described_as_such():
    label = draw(intervals(certain=True), "identifiability").axes[0].get_xlabel()
    assert "No other row of weights has this output: every weight is determined." in label.replace("\n", " ")


def test_a_long_text_fits_a_page_and_the_caption_says_how_many_tokens_are_labelled():
    drawn = draw(intervals(" ".join(["word"] * 128)), "identifiability")
    assert drawn.get_figheight() <= theme.PAGE[1]
    assert len(drawn.axes[0].get_yticks()) == 64
    assert "Tokens: 1 of 2 labelled." in " ".join(drawn.axes[0].get_xlabel().split())


def test_maps_raise_an_error():
    with pytest.raises(InputError, match="This figure needs the variable 'raw', but the data has 'weights'"):
        draw(dataset(), "identifiability")


def test_a_size_that_is_too_narrow_raises_an_error():
    with pytest.raises(InputError, match=r"size=0.5 inches is too narrow for the labels of this figure"):
        draw(intervals(), "identifiability", size=0.5)
