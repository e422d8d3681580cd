import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError, UnknownName
from headscope.core.kind import find_kind
from headscope.plotting.draw import draw
from tests.figures.data import evaluated, measured


def test_each_cell_has_its_count_and_its_share_of_the_labels_maps():
    data = evaluated()
    table = data["confusion"].sel(classifier="cnn", subset="all").values[:, :3]
    axes = draw(data, "confusion").axes[0]
    shares = table / table.sum(1, keepdims=True)
    assert np.allclose(axes.images[0].get_array(), shares)
    expected = [f"{n}\n{100 * part:.0f} %" for n, part in zip(table.ravel(), shares.ravel(), strict=True) if n]
    assert [text.get_text() for text in axes.texts] == expected


def test_unsure_is_shown_where_a_classifier_predicts_it():
    data = evaluated(("vertical_diagonal", "block"))
    plain, both = (draw(data, "confusion", classifier=name).axes[0] for name in ("cnn", "both"))
    labels = [label.get_text() for label in both.get_xticklabels()]
    assert [label.get_text() for label in plain.get_xticklabels()] == ["vertical + diagonal", "block"]
    assert labels == ["vertical + diagonal", "block", "unsure"]


def test_the_title_has_classifier_count_subset_and_macro_f1():
    count = int(evaluated()["confusion"].sel(classifier="both", subset="random").sum())
    axes = draw(evaluated(), "confusion", classifier="both", subset="random").axes[0]
    assert axes.get_title() == f"both · {count} maps, random\nmacro-F1 0.70 [0.60, 0.80]"


def test_a_class_without_labels_is_hatched_and_has_no_numbers():
    data = evaluated()
    data["confusion"][:, :, 1] = 0
    axes = draw(data, "confusion").axes[0]
    assert not [text for text in axes.texts if text.get_position()[1] == 1]


def test_unknown_names_missing_variables_and_small_sizes_raise():
    with pytest.raises(UnknownName, match="No classifier in this data is called 'cnm'. Did you mean 'cnn'"):
        draw(evaluated(), "confusion", classifier="cnm")
    with pytest.raises(UnknownName, match="No subset in this data is called 'long'"):
        draw(evaluated(), "confusion", subset="long")
    with pytest.raises(InputError, match="This figure needs the variable 'confusion', but the data has 'entropy'"):
        draw(measured(), "confusion")
    with pytest.raises(InputError, match=r"size=1 inches is too narrow for the labels of this figure"):
        draw(evaluated(), "confusion", size=1.0)


def test_it_is_drawn_where_no_figure_is_named():
    data = xr.Dataset({"confusion": 0})
    assert find_kind(data).figure(data) == "confusion"
