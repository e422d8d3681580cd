import numpy as np
import pytest
from matplotlib.collections import LineCollection

from headscope.core.errors import InputError, UnknownName
from headscope.core.kind import find_kind
from headscope.plotting.draw import draw
from headscope.plotting.head_dots import BEHAVIOURS, name_looks
from tests.figures.data import clustered, dataset


def legend_labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_clusters_are_drawn_where_no_figure_is_named():
    assert find_kind(clustered()).figure(clustered()) == "clusters"


def test_every_head_has_its_position():
    data = clustered(layers=3, heads=4)
    (axes,) = draw(data, "clusters", lens="effective").axes
    dots = np.concatenate([line.get_xydata() for line in axes.lines])
    expected = data["position"].sel(lens="effective").values.reshape(-1, 2)
    assert np.allclose(sorted(map(tuple, dots)), sorted(map(tuple, expected)))
    assert legend_labels(axes) == ["L0", "L1", "L2"]
    assert axes.get_title(loc="left") == "effective · heads by layer"


@pytest.mark.parametrize(("colour", "names"), [("behaviour", ["a", "b", "other"]), ("cluster", ["1", "2"])])
def test_heads_are_coloured_by_name(colour, names):
    (axes,) = draw(clustered(("b", "a", "other")), "clusters", colour=colour).axes
    assert legend_labels(axes) == names
    if colour == "behaviour":
        assert [len(line.get_xdata()) for line in axes.lines] == [2, 2, 2]


def test_both_axes_have_the_same_scale_and_the_test_is_in_the_note():
    figure = draw(clustered(layers=3, heads=4), "clusters")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    x, y = (np.ptp(limits) for limits in (axes.get_xlim(), axes.get_ylim()))
    box = axes.get_window_extent()
    assert x / y == pytest.approx(box.width / box.height)
    note = " ".join(" ".join(text.get_text() for text in axes.texts).split())
    assert "12 heads, stress 0." in note
    assert "Distance, nats: mean within layers" in note


def test_a_behaviour_looks_the_same_beside_others():
    alone = name_looks(["broad", "other"])
    assert alone["broad"] == name_looks([*BEHAVIOURS, "verbs"])["broad"]
    assert list(alone) == ["broad", "other"]
    with pytest.raises(InputError, match="There are 8 names of heads, but only 7 can be told apart"):
        name_looks(list("abcdefgh"))


def test_branches_meet_at_the_height_of_the_tree():
    data = clustered(layers=3, heads=4)
    (axes,) = draw(data, "dendrogram").axes
    (branches,) = (artist for artist in axes.collections if isinstance(artist, LineCollection))
    heights = sorted(float(np.max(segment[:, 1])) for segment in branches.get_segments())
    assert np.allclose(heights, np.sort(data["merge"].sel(lens="raw", part="distance")))
    leaves = [label.get_text() for label in axes.get_xticklabels()]
    flat = [f"L{layer}H{head}" for layer in range(3) for head in range(4)]
    assert leaves == [flat[index] for index in np.argsort(data["leaf"].sel(lens="raw").values.ravel())]


def test_the_line_cuts_the_tree_into_its_clusters():
    data = clustered(layers=3, heads=4)
    (axes,) = draw(data, "dendrogram").axes
    height = axes.lines[0].get_ydata()[0]
    joined = data["merge"].sel(lens="raw", part="distance").values
    assert (joined > height).sum() == int(data["clusters"].sel(lens="raw")) - 1


def test_many_heads_are_not_named():
    (axes,) = draw(clustered(layers=10, heads=12), "dendrogram").axes
    assert not axes.get_xticklabels()


@pytest.mark.parametrize("name", ["clusters", "dendrogram"])
def test_other_data_is_refused(name):
    with pytest.raises(InputError, match=f"The figure '{name}' draws the result of hs.cluster, but the data has"):
        draw(dataset(), name)
    with pytest.raises(UnknownName, match="No lens in this data is called 'rwa'"):
        draw(clustered(), name, lens="rwa")


def test_a_colour_that_the_data_lacks_is_named():
    with pytest.raises(InputError, match="needs the variable 'behaviour'"):
        draw(clustered().drop_vars("behaviour"), "clusters", colour="behaviour")
