import numpy as np
import pytest
from scipy import stats

from headscope.core.errors import InputError, UnknownName
from headscope.plotting.draw import draw
from headscope.plotting.head_dots import select_apart
from tests.figures.data import measured


def dots(figure):
    return np.concatenate([line.get_xydata() for line in figure.axes[0].lines if line.get_linestyle() == "None"])


def corner_text(figure):
    return figure.axes[0].texts[-1].get_text()


def test_two_lenses_are_drawn_against_each_other_with_a_diagonal():
    data = measured()
    figure = draw(data, "scatter")
    entropy = data["entropy"].sel(site="self")
    assert np.allclose(
        dots(figure), np.stack([entropy.sel(lens=lens).values.ravel() for lens in ("raw", "effective")], -1)
    )
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert all(np.array_equal(line.get_xdata(), line.get_ydata()) for line in dashed)
    assert len(dashed) == 1
    assert figure.axes[0].get_title("left") == "entropy: effective against raw"


def test_two_variables_are_drawn_against_each_other():
    data = measured()
    figure = draw(data, "scatter", x="distance", y="token_types", lens="effective", at="type=sep")
    selected = data.sel(lens="effective", site="self", type="sep")
    assert np.allclose(
        dots(figure), np.stack([selected["distance"].values.ravel(), selected["token_types"].values.ravel()], -1)
    )
    assert figure.axes[0].get_xlabel() == "attention distance (tokens)"
    assert figure.axes[0].get_ylabel() == "attention weight, type sep"
    assert not any(line.get_linestyle() == "--" for line in figure.axes[0].lines)


def test_with_one_lens_y_is_the_next_variable():
    assert draw(measured(lenses=["raw"]), "scatter").axes[0].get_title("left") == "raw · entropy and distance"


def test_the_rank_correlation_agrees_with_scipy_and_is_printed():
    data = measured(layers=4, heads=6)
    data["entropy"].loc[{"lens": "effective", "layer": 1, "head": 2}] = np.nan
    x, y = (data["entropy"].sel(lens=lens).values.ravel() for lens in ("raw", "effective"))
    rho = stats.spearmanr(x, y, nan_policy="omit").statistic
    assert corner_text(draw(data, "scatter")) == f"Spearman {rho:.2f}, 23 heads; n = 7 examples".replace("-", "−")


def test_a_constant_variable_has_no_rank_correlation():
    data = measured(layers=4, heads=6)
    data["entropy"].loc[{"lens": "raw"}] = 1.0
    assert corner_text(draw(data, "scatter")) == "24 heads; n = 7 examples"


def test_the_heads_farthest_from_the_diagonal_are_labelled():
    data = measured(rows=False)
    data["entropy"][:] = 1.0 + 0.001 * np.arange(6).reshape(2, 3)
    data["entropy"].loc[{"lens": "effective", "layer": 1, "head": 2}] = 3.0
    assert "L1H2" in [text.get_text() for text in draw(data, "scatter", labels=1).axes[0].texts]
    assert len(draw(data, "scatter", labels=0).axes[0].texts) == 1


def test_labels_do_not_overlap():
    x = y = np.array([0.0, 0.01, 1.0])
    assert select_apart(x, y, [0, 1, 2], count=3, label=(0.1, 0.05)) == [0, 2]


def test_layers_differ_in_shade_and_mark():
    handles = draw(measured(layers=4), "scatter").axes[0].get_legend().get_lines()
    assert len({handle.get_marker() for handle in handles}) == 4
    assert len({tuple(handle.get_color()) for handle in handles}) == 4
    deep = draw(measured(layers=13), "scatter")
    assert deep.axes[0].get_legend() is None
    assert deep.axes[0].child_axes[0].get_ylabel() == "layer"


def test_heads_without_a_value_are_left_out_and_counted():
    data = measured()
    data["entropy"][0, 0, 0, 0] = np.nan
    assert "5 heads" in corner_text(draw(data, "scatter"))
    data["entropy"][:] = np.nan
    assert corner_text(draw(data, "scatter")).startswith("0 heads")


def test_invalid_choices_raise_an_error():
    with pytest.raises(
        InputError, match=r"needs two things to compare, but this data has only 'entropy' through the lens"
    ):
        draw(measured(lenses=["raw"])[["entropy"]], "scatter")
    with pytest.raises(UnknownName, match="No measured variable in this data is called 'distanse'"):
        draw(measured(), "scatter", y="distanse")
    with pytest.raises(InputError, match=r"'scatter' cannot show every axis of 'token_types'"):
        draw(measured(), "scatter", y="token_types")
    with pytest.raises(UnknownName, match="No axis of 'entropy' or 'distance' is called 'tpe'"):
        draw(measured(), "scatter", x="entropy", y="distance", at="tpe=sep")
