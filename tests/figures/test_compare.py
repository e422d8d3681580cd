import json

import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.plotting.draw import draw, to_dataset
from tests.figures.data import dataset

SHARES = [[0.9, 0.8, 0.7], [0.6, 0.2, 0.5]]


def panels(figure):
    return [ax for ax in figure.axes if ax.images]


def test_three_panels_share_one_symmetric_scale():
    ends = {panel.images[0].get_clim() for panel in panels(draw(dataset(shares=SHARES), "compare"))}
    assert len(ends) == 1
    low, high = ends.pop()
    assert low == -high


def test_the_third_panel_is_what_the_lens_adds_to_raw_attention():
    figure = draw(dataset(shares=SHARES), "compare")
    raw, effective, difference = (panel.images[0].get_array() for panel in panels(figure))
    assert np.allclose(effective - raw, difference)
    assert [panel.get_title() for panel in panels(figure)] == ["raw", "effective", "effective − raw"]


def test_the_head_that_changes_most_is_chosen_and_the_title_says_so():
    title = draw(dataset(shares=SHARES), "compare").get_suptitle()
    assert title.startswith("L1H1, the head that changes most\n3 tokens, rank 2: 20 % of this attention is effective")


def test_a_given_layer_restricts_the_automatic_head():
    assert (
        draw(dataset(shares=SHARES), "compare", layer=0).get_suptitle().startswith("L0H2, the head that changes most")
    )


def test_negative_layers_and_heads_count_from_the_end():
    assert draw(dataset(shares=SHARES), "compare", layer=-2).get_suptitle().startswith("L0H2, the head that")
    assert draw(dataset(shares=SHARES), "compare", layer=-1, head=-3).get_suptitle().startswith("L1H0\n")


def test_a_given_head_is_not_called_the_most_changed():
    assert draw(dataset(shares=SHARES), "compare", layer=0, head=0).get_suptitle().startswith("L0H0\n")


def test_without_shares_the_largest_difference_is_chosen():
    title = draw(dataset(shares=SHARES).drop_vars("share"), "compare").get_suptitle()
    assert title.strip() == "L1H1, the head that changes most"


def test_the_only_head_is_not_called_the_most_changed():
    head = dataset(shares=SHARES).isel(layer=[1], head=[1])
    assert draw(head, "compare").get_suptitle().startswith("L1H1\n")


def test_equal_maps_are_drawn_once_with_the_reason():
    figure = draw(dataset(shares=np.ones((2, 3))), "compare")
    assert len(panels(figure)) == 1
    note = " ".join(panels(figure)[0].texts[0].get_text().split())
    assert note == (
        "3 tokens, rank 3: all of this attention reaches the output, so effective attention is the same as raw "
        "attention."
    )


def test_a_single_lens_cannot_be_compared():
    with pytest.raises(
        InputError, match=r"needs two maps, but the data has only 'effective'\. View one trace through two lenses"
    ):
        draw(dataset().isel(lens=[1]), "compare")


def of_model(data, name):
    return data.isel(lens=[0]).assign_attrs(headscope=json.dumps({"model": name}))


def test_two_models_are_compared_under_their_names():
    first, second = dataset(), dataset().assign(weights=dataset()["weights"] ** 2)
    figure = draw([of_model(first, "bert"), of_model(second, "roberta")], "compare", layer=1, head=0)
    titles = ["raw, bert", "raw, roberta", "raw, roberta − raw, bert"]
    assert [" ".join(panel.get_title().split()) for panel in panels(figure)] == titles
    assert figure.get_suptitle().strip() == "L1H0"
    named = draw({"before": first.isel(lens=[0]), "after": second.isel(lens=[0])}, "compare")
    assert [panel.get_title() for panel in panels(named)] == ["before", "after", "after − before"]


def test_two_texts_are_compared_with_their_own_tokens_and_without_a_difference():
    first, second = dataset("the cat sat").isel(lens=[0]), dataset("a small dog ran off").isel(lens=[0])
    figure = draw([first, second], "compare", layer=0, head=1)
    left, right = panels(figure)
    assert [left.get_title(), right.get_title()] == ["raw (1)", "raw (2)"]
    assert [label.get_text() for label in left.get_yticklabels()] == ["the", "cat", "sat"]
    assert [label.get_text() for label in right.get_xticklabels()] == ["a", "small", "dog", "ran", "off"]
    for panel, data in ((left, first), (right, second)):
        assert np.allclose(panel.images[0].get_array(), data["weights"].sel(layer=0, head=1).values[0])


def test_models_with_other_layers_are_compared_where_both_have_them():
    first, second = dataset(layers=3).isel(lens=[0]), dataset(layers=2, heads=2).isel(lens=[1])
    data = to_dataset([first, second])
    assert data.sizes["layer"] == 2
    assert data.sizes["head"] == 2
    with pytest.raises(InputError, match="must share layers, but these have layers 0 and 1"):
        draw([first.isel(layer=[0]), second.isel(layer=[1])], "compare")


@pytest.mark.parametrize("text", ["word", "two words"])
def test_very_short_texts_are_compared(text):
    draw(dataset(text), "compare").draw_without_rendering()  # matplotlib warns of panels without a size


def test_raw_is_not_compared_with_itself():
    with pytest.raises(InputError, match=r"compare raw attention with itself\. Give effective\."):
        draw(dataset(), "compare", lens="raw")
