import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.figures.arcs import select_mass
from headscope.plotting.draw import draw
from tests.figures.data import dataset


def lines(figure):
    return [line for each in figure.axes[0].collections for line in each.get_segments()]


def test_the_largest_weights_of_each_row_are_selected_up_to_the_mass():
    weights = np.array([[0.6, 0.3, 0.1], [-0.5, 0.25, 0.25]])
    assert select_mass(weights, 0.8).tolist() == [[0.6, 0.3, 0.0], [-0.5, 0.25, 0.25]]
    assert select_mass(weights, 0.5).tolist() == [[0.6, 0.0, 0.0], [-0.5, 0.0, 0.0]]
    assert select_mass(weights, 1.0).tolist() == weights.tolist()


def test_a_row_of_zeros_has_no_lines():
    assert not select_mass(np.zeros((2, 3)), 1.0).any()


def test_every_weight_is_a_line_for_a_mass_of_1():
    assert len(lines(draw(dataset(), "arcs", mass=1.0))) == 9


def test_a_query_shows_only_its_own_lines():
    starts = {float(line[0][1]) for line in lines(draw(dataset(), "arcs", mass=1.0, query=2))}
    assert starts == {2.0}


def test_the_caption_states_the_mass():
    texts = [" ".join(text.get_text().split()) for text in draw(dataset(), "arcs").axes[0].texts]
    assert any("Of each query the largest weights are drawn, up to 80 % of its total." in each for each in texts)


def test_several_heads_have_a_colour_each_and_a_legend():
    legend = draw(dataset(), "arcs", heads=(0, 2)).axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["H0", "H2"]
    assert len({line.get_color() for line in legend.get_lines()}) == 2


def test_heads_can_be_read_from_a_spec():
    assert draw(dataset(), "arcs:heads=0+2,layer=1").axes[0].get_title() == "raw · L1H0, L1H2"


def test_negative_weights_are_dashed_and_the_legend_says_so():
    legend = draw(dataset(), "arcs", lens="effective").axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["below zero"]


@pytest.mark.parametrize("mass", [0.0, -1.0, 1.5])
def test_an_impossible_mass_raises_an_error(mass):
    with pytest.raises(InputError, match=f"mass={mass} must be above 0 and at most 1"):
        draw(dataset(), "arcs", mass=mass)


def test_an_unknown_query_raises_an_error():
    with pytest.raises(InputError, match=r"There is no query 3: this text has 3 query tokens, 0 to 2."):
        draw(dataset(), "arcs", query=3)


def test_more_heads_than_colours_raises_an_error():
    with pytest.raises(InputError, match=r"heads asks for 9 heads, but only 8 colours can be told apart. Give fewer"):
        draw(dataset(heads=9), "arcs", heads=tuple(range(9)))


def test_an_empty_tuple_of_heads_raises_an_error():
    with pytest.raises(InputError, match=r"heads=\(\) asks for no head at all. Leave it out to get the first."):
        draw(dataset(), "arcs", heads=())
