import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError, UnknownName
from headscope.plotting.draw import draw
from tests.figures.data import measured


def parts(ax):
    return np.array([[bar.get_y(), bar.get_height()] for bar in ax.patches])


def positive():
    data = measured()
    return data.assign(token_types=abs(data["token_types"]), token_types_rows=abs(data["token_types_rows"]))


def test_each_layer_stacks_up_to_the_sum_of_its_parts():
    data = positive()
    panels = [ax for ax in draw(data, "stacked_bars").axes if ax.axison]
    assert [panel.get_title() for panel in panels] == ["raw", "effective"]
    means = data["token_types_rows"].mean(("example", "head")).sel(site="self")  # lens layer type
    for panel, wanted in zip(panels, means, strict=True):
        stack = parts(panel).reshape(3, 2, 2)  # type layer (bottom, height)
        assert np.allclose(stack[..., 1].T, wanted)
        assert np.allclose(stack[-1].sum(-1), wanted.sum("type"))


def test_negative_parts_are_stacked_below_zero():
    data = measured(rows=False)
    data["token_types"][..., 1] = -0.1
    stack = parts(draw(data, "stacked_bars", lens="raw").axes[0])
    assert any(bottom <= 0 and height < 0 for bottom, height in stack)
    assert all(bottom >= 0 for bottom, height in stack if height > 0)


def test_the_legend_has_the_order_of_the_stack():
    legend = draw(measured(), "stacked_bars").axes[-1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["sep", "verb", "noun"]
    assert legend.get_title().get_text() == "type"


def test_a_part_without_any_value_is_dropped_and_listed():
    data = measured()
    data["token_types"][..., 1] = np.nan
    data["token_types_rows"][..., 1] = np.nan
    figure = draw(data, "stacked_bars")
    assert [text.get_text() for text in figure.axes[-1].get_legend().get_texts()] == ["sep", "noun"]
    assert figure.get_supxlabel() == "Mean over 3 heads. n = 7 examples. No value: verb."


def test_many_numeric_parts_have_a_gradient():
    offsets = list(range(-5, 6))
    data = measured(types=offsets).rename(type="offset")
    legend = draw(data, "stacked_bars").axes[-1].get_legend()
    assert len({patch.get_facecolor() for patch in legend.get_patches()}) == 11


def test_invalid_choices_raise_an_error():
    with pytest.raises(
        InputError, match=r"stacks the parts along an axis, but 'entropy' has none beside layer and head"
    ):
        draw(measured(), "stacked_bars", variable="entropy")
    with pytest.raises(UnknownName, match="No axis of 'token_types' is called 'role'"):
        draw(measured(), "stacked_bars", parts="role")
    with pytest.raises(UnknownName, match="No axis of 'token_types' is called 'roles'"):
        draw(measured(), "stacked_bars", along="roles")


def patterns(tasks=()):
    """Shares of patterns by layer and over all, for both lenses and maybe several tasks."""
    names = np.array(["vertical", "vertical_diagonal", "block"], dtype=object)
    share = np.random.default_rng(0).dirichlet([1, 1, 1], size=(2, 1, 4))
    data = xr.Dataset(
        {
            "patterns_layer_share": (("lens", "site", "layer", "pattern"), share),
            "patterns_layer_share_low": (("lens", "site", "layer", "pattern"), share - 0.1),
            "patterns_share": (("lens", "site", "pattern"), share.mean(2)),
        },
        coords={"lens": ["raw", "effective"], "site": ["self"], "layer": range(4), "pattern": names},
    )
    return xr.concat([data] * len(tasks), xr.DataArray(list(tasks), dims="task", name="task")) if tasks else data


def test_shares_of_patterns_over_heads_are_stacked_by_layer_under_their_names():
    figure = draw(patterns(), "stacked_bars", variable="patterns_layer_share")
    wanted = patterns()["patterns_layer_share"].isel(site=0)
    for panel, lens in zip([ax for ax in figure.axes if ax.axison], wanted, strict=True):
        assert np.allclose(parts(panel).reshape(3, 4, 2)[..., 1].T, lens)
    texts = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert texts == ["block", "vertical + diagonal", "vertical"]


def test_shares_of_patterns_of_several_tasks_are_stacked_side_by_side():
    figure = draw(patterns(("rte", "mrpc", "sst2")), "stacked_bars", variable="patterns_share", along="task")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["rte", "mrpc", "sst2"]
    assert len(figure.axes[0].patches) == 9
