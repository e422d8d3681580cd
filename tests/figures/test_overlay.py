import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError
from headscope.plotting import theme
from headscope.plotting.draw import draw

WEIGHTS = np.array([[0.4, 0.0, 0.0, 0.1, 0.5], *[[0.2] * 5] * 4])


def dataset(weights=WEIGHTS, *, special=1, signed=False) -> xr.Dataset:
    """Four patches of a white picture of 8 × 8, after [CLS]."""
    row, column = np.pad(np.indices((2, 2)).reshape(2, -1), ((0, 0), (1, 0)), constant_values=-1)
    names = ["[CLS]", "0,0", "0,1", "1,0", "1,1"]
    data = xr.Dataset(
        {
            "weights": (("lens", "layer", "head", "query", "key"), np.asarray(weights)[None, None, None]),
            "picture": (("row", "column", "colour"), np.full((8, 8, 3), 255, dtype=np.uint8)),
        },
        coords={
            "lens": ["raw"],
            "signed": ("lens", [signed]),
            "layer": [0],
            "head": [0],
            "query_token": ("query", names),
            "key_token": ("key", names),
            "query_special": ("query", np.arange(5) < special),
            "key_row": ("key", row),
            "key_column": ("key", column),
        },
    )
    return data.isel(query=slice(1 - special, None), key=slice(1 - special, None))


def painted(figure):
    return figure.axes[0].images[0].get_array()


def grey(pixel):
    return theme.luminance(tuple(pixel))


def test_each_patch_is_as_dark_as_the_query_attends_to_it():
    shown = painted(draw(dataset(), "overlay"))
    assert shown.shape == (8, 8, 3)
    assert np.allclose(shown[:4], 1)  # the patches 0,0 and 0,1 get nothing, so the white picture stays white
    assert grey(shown[0, 0]) > grey(shown[5, 1]) > grey(shown[5, 6])


def test_the_image_is_visible_under_the_largest_weight():
    data = dataset()
    data["picture"][6, 6] = 0
    shown = painted(draw(data, "overlay"))
    assert grey(shown[6, 6]) < 0.6 * grey(shown[5, 5])


def test_the_query_is_cls_by_default_and_any_patch_on_request():
    assert draw(dataset(), "overlay").axes[0].get_title() == "raw · L0H0 · from [CLS]"
    assert draw(dataset(), "overlay:query=3").axes[0].get_title() == "raw · L0H0 · from 1,0"


def test_the_patch_of_the_query_is_outlined():
    (frame,) = draw(dataset(), "overlay", query=3).axes[0].patches
    assert (frame.get_xy(), frame.get_width(), frame.get_height()) == ((-0.5, 3.5), 4, 4)
    assert not draw(dataset(), "overlay").axes[0].patches


def test_without_cls_the_mean_over_queries_is_shown():
    assert "mean over queries" in draw(dataset(special=0), "overlay").axes[0].get_title()
    assert "mean over queries" in draw(dataset(), "overlay", mean=True).axes[0].get_title()


def test_the_mean_is_over_the_queries_that_see_a_key():
    data = dataset(np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None])
    data["visible"] = (("layer", "query", "key"), np.tril(np.ones((1, 5, 5), bool)))
    shown = painted(draw(data, "overlay", mean=True))
    assert grey(shown[0, 0]) < grey(shown[7, 7])  # 0,0 gets (1/2 + 1/3 + 1/4 + 1/5) / 4, and 1,1 gets 1/5


def test_zero_in_signed_maps_leaves_the_image_unchanged():
    shown = painted(draw(dataset(WEIGHTS - 0.1, signed=True), "overlay"))
    assert np.allclose(shown[5, 1], 1, atol=0.01)  # 0.1 - 0.1, one of 256 shades
    assert shown[0, 0, 0] > shown[0, 0, 2]  # orange is below zero


def test_the_weight_on_other_tokens_is_printed_below():
    assert [text.get_text() for text in draw(dataset(), "overlay").axes[0].texts] == ["Not shown: 0.4 to [CLS]"]
    assert not draw(dataset(special=0), "overlay").axes[0].texts


def test_size_is_the_width_in_inches():
    assert draw(dataset(), "overlay", size=4.0).get_figwidth() == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("data", "options", "sentence"),
    [
        (
            dataset().drop_vars("picture"),
            {},
            r"'overlay' needs a picture, but this data has none\. Capture a path or a",
        ),
        (dataset().isel(key=[0]), {}, r"none of the keys in this data is a patch"),
        (dataset(), {"query": 5}, r"There is no query 5: this text has 5 query tokens, 0 to 4"),
        (dataset(), {"query": 1, "mean": True}, r"mean=True is over all queries, but query=1 asks for one"),
    ],
)
def test_invalid_choices_raise_an_error(data, options, sentence):
    with pytest.raises(InputError, match=sentence):
        draw(data, "overlay", **options)
