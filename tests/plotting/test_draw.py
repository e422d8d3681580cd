import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

from headscope.core.errors import InputError, UnknownName
from headscope.core.kind import find_kind
from headscope.plotting import selection
from headscope.plotting.draw import draw, to_dataset
from headscope.plotting.export import render
from headscope.results.compare import compare
from tests.figures.data import dataset, measured


class Maps:
    """What draw asks of Maps."""

    def __init__(self, *examples):
        self.examples = examples

    def dataset(self, example=0):
        return self.examples[example]


def raw(tokens="the cat sat"):
    return dataset(tokens).isel(lens=[0]).drop_vars(["share", "null", "rank"])


def effective(tokens="the cat sat"):
    return dataset(tokens).isel(lens=[1])


def test_maps_are_drawn_by_example():
    maps = Maps(dataset("the cat"), dataset("a dog"))
    labels = draw(maps, "matrix", example=1).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["a", "dog"]


def test_several_maps_are_concatenated_along_lens():
    data = to_dataset([Maps(raw()), Maps(effective())])
    assert list(data["lens"].values) == ["raw", "effective"]
    assert list(data["signed"].values) == [False, True]
    assert data["visible"].dims == ("layer", "query", "key")
    assert data["visible"].dtype == bool
    assert data["weights"].equals(dataset()["weights"])


def test_missing_diagnostics_of_a_lens_are_nan():
    share = to_dataset([Maps(raw()), Maps(effective())])["share"]
    assert np.isnan(share.sel(lens="raw")).all()
    assert (share.sel(lens="effective") == 0.5).all()


def test_several_maps_can_be_compared():
    assert draw([Maps(raw()), Maps(effective())], "compare").get_suptitle().startswith("L0H0, the head that")


@pytest.mark.parametrize(
    ("data", "options", "figure"),
    [
        (dataset(), (), "compare"),
        (dataset(), ("layer", "head"), "compare"),
        (raw(), (), "head_grid"),
        (effective(), ("colour",), "head_grid"),
        (effective(), ("layer",), "matrix"),
        (effective().isel(layer=[0], head=[1]), (), "matrix"),
        (effective().isel(lens=0), (), "head_grid"),
        (effective().isel(lens=0, layer=0, head=0), (), "matrix"),
        (measured(), (), "heads:variable=entropy"),
        (measured(), ("colour",), "head_grid"),
        (xr.Dataset({"least_row": 0}), (), "identifiability"),
    ],
)
def test_without_a_name_the_data_decide_the_figure(data, options, figure):
    assert find_kind(data).figure(data, options) == figure


def test_the_figure_that_is_chosen_is_drawn():
    for data, options in ((dataset(), {}), (raw(), {}), (effective(), {"layer": 1, "head": 2}), (measured(), {})):
        name = find_kind(data).figure(data, options)
        assert render(draw(data, **options), "svg") == render(draw(data, name, **options), "svg")


def test_maps_of_different_texts_are_padded_and_selected_without_padding():
    short, long = raw(), effective("a very big dog")
    data = to_dataset([Maps(short), Maps(long)])
    assert data.sizes["query"] == 4
    assert np.array_equal(selection.select_maps(data, "raw")["weights"], short["weights"][0])
    chosen = selection.select_maps(data, "effective")
    assert list(chosen["key_token"].values) == ["a", "very", "big", "dog"]
    assert chosen["visible"].dtype == bool


def test_maps_of_one_name_are_numbered_and_a_dict_names_them():
    assert list(to_dataset([Maps(raw()), Maps(raw())])["lens"].values) == ["raw (1)", "raw (2)"]
    assert list(to_dataset({"one": Maps(raw()), "two": Maps(raw())})["lens"].values) == ["one", "two"]
    with pytest.raises(InputError, match="Each name must be that of one map, but 'one' has 2 lenses"):
        to_dataset({"one": dataset()})


@pytest.mark.parametrize(("what", "kind"), [([], "an empty list"), (3, "a int"), ([3], "a list"), ("text", "a str")])
def test_only_maps_and_datasets_are_drawn(what, kind):
    with pytest.raises(
        InputError, match=f"Only a Dataset, Maps, Importances, or a list of these can be drawn, but got {kind}"
    ):
        draw(what)


def test_an_unknown_figure_raises_an_error():
    with pytest.raises(UnknownName, match=r"No figure is called 'matrx'. Did you mean 'matrix'?"):
        draw(dataset(), "matrx")


def test_an_unknown_option_raises_an_error():
    with pytest.raises(UnknownName, match=r"No parameter of 'arcs' is called 'head'. Did you mean 'heads'?"):
        draw(dataset(), "arcs", head=1)


def test_a_comparison_is_drawn_as_differences_with_its_n():
    figure = draw(compare(measured(), measured(seed=1), variable="entropy"))
    texts = " ".join(text.get_text() for text in figure.findobj(Text))
    assert "difference in entropy" in texts
    assert "n = " in texts
