import numpy as np
import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.plotting.draw import draw
from headscope.results.compare import compare
from tests.figures.data import dataset, measured


def panels(figure):
    return [ax for ax in figure.axes if ax.images]


def numbers(panel):
    return [text.get_text() for text in panel.texts]


def caption(figure):
    return " ".join(figure.get_supxlabel().split())


def difference():
    data = measured(examples=20)
    return compare(data.sel(lens="raw"), data.sel(lens="effective"))


def test_every_lens_has_a_panel_with_its_numbers_on_one_scale():
    data = measured()
    axes = panels(draw(data, "heads"))
    assert [panel.get_title() for panel in axes] == ["raw", "effective"]
    assert numbers(axes[1]) == [f"{each:.2f}" for each in data["entropy"].sel(lens="effective").values.ravel()]
    assert len({panel.images[0].get_clim() for panel in axes}) == 1


def test_a_measurement_of_several_lenses_is_drawn_with_a_panel_for_each_by_default():
    assert [panel.get_title() for panel in panels(draw(measured()))] == ["raw", "effective"]
    assert draw(measured(), variable="distance")._suptitle.get_text() == "distance of every head"
    assert draw(measured().sel(lens=["raw"])).axes[0].get_title() == "raw · entropy of every head"
    assert draw(measured(), colour="distance").axes[0].get_title() == "raw · distance of every head"


def test_layers_are_rows_and_heads_are_columns():
    panel = panels(draw(measured(layers=2, heads=5), "heads"))[0]
    assert [each.get_text() for each in panel.get_yticklabels()] == ["L0", "L1"]
    assert [each.get_text() for each in panel.get_xticklabels()] == ["H0", "H1", "H2", "H3", "H4"]


def test_a_label_along_a_further_axis_is_selected():
    data = measured()
    figure = draw(data, "heads:variable=token_types,at=type=verb,lens=raw")
    (panel,) = panels(figure)
    assert np.allclose(panel.images[0].get_array(), data["token_types"].sel(lens="raw", site="self", type="verb"))
    assert figure.get_suptitle() == "token types · type verb"


def test_an_axis_without_a_selection_raises_an_error_with_a_choice():
    with pytest.raises(InputError, match=r"also has type \(noun, verb and sep\)\. Choose with at='type=noun'\."):
        draw(measured(), "heads", variable="token_types")


def test_positive_numbers_have_a_linear_and_signed_ones_a_symmetric_scale():
    data = measured()
    low, high = panels(draw(data, "heads"))[0].images[0].get_clim()
    assert (low, high) == (float(data["entropy"].min()), float(data["entropy"].max()))
    low, high = panels(draw(data, "heads", variable="token_types", at="type=noun"))[0].images[0].get_clim()
    assert low == -high


def test_differences_are_symmetric_and_bold_where_significant():
    data = difference()
    figure = draw(data, "heads")
    (panel,) = panels(figure)
    low, high = panel.images[0].get_clim()
    assert low == -high
    assert panel.get_title() == "effective − raw"
    assert figure.get_suptitle() == "difference in entropy"
    bold = [text.get_fontweight() == "bold" for text in panel.texts]
    assert bold == (data["entropy_significant"].values.ravel() == 1).tolist()
    assert caption(figure) == "n = 20 examples · bold: p < 0.05 after Holm correction"


def test_significant_cells_have_a_dot_where_numbers_do_not_fit():
    data = difference()
    figure = draw(data, "heads", size=0.8)
    (panel,) = panels(figure)
    assert not panel.texts
    assert len(panel.lines) == int(data["entropy_significant"].sum())
    assert "dot: p < 0.05" in caption(figure)


def test_cells_without_a_value_are_hatched_and_counted():
    data = measured()
    data["entropy"][0, 0, 1, 2] = np.nan
    data["entropy_n"][0, 0, 1, 2] = 0
    figure = draw(data, "heads")
    assert numbers(panels(figure)[0])[-1] == "–"
    assert panels(figure)[0].patches[0].get_hatch()
    assert caption(figure) == "n = 0 to 7 examples · hatched: no value (1)"


def test_many_heads_keep_their_numbers_and_panels_go_below_each_other():
    figure = draw(measured(layers=2, heads=32), "heads")
    first, second = panels(figure)
    assert len(first.texts) == 64
    assert first.get_subplotspec().rowspan.start < second.get_subplotspec().rowspan.start


def test_one_column_of_a_paper_has_room_for_twelve_heads():
    figure = draw(measured(layers=6, heads=12), "heads", size=3.3)
    assert figure.get_figwidth() == pytest.approx(3.3)
    assert all(len(panel.texts) == 72 for panel in panels(figure))
    assert all(text.get_fontsize() >= 4 for panel in panels(figure) for text in panel.texts)


def test_data_with_a_selected_lens_or_layer_is_drawn():
    assert len(panels(draw(measured().sel(lens="raw"), "heads"))) == 1
    assert panels(draw(measured().sel(layer=1), "heads"))[0].images[0].get_array().shape == (1, 3)
    assert panels(draw(measured().sel(lens="raw", drop=True), "heads"))[0].get_title() == ""


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"variable": "entropi"}, UnknownName, r"No measured variable in this data is called 'entropi'\. Did you mean"),
        ({"lens": "rwa"}, UnknownName, r"No lens in this data is called 'rwa'\. Did you mean 'raw'"),
        ({"at": "typ=noun"}, UnknownName, r"No axis of 'entropy' is called 'typ'"),
        ({"at": "layer=9"}, UnknownName, r"No layer in this data is called '9'\. Known: 0, 1\."),
        ({"at": "layer"}, InputError, r"Cannot read at='layer'\. Write axis=label, such as head=0\."),
        ({"size": 0.4}, InputError, r"size=0.4 inches is too narrow for the labels of this figure"),
    ],
)
def test_invalid_choices_raise_an_error(options, error, sentence):
    with pytest.raises(error, match=sentence):
        draw(measured(), "heads", **options)


def test_maps_are_not_measured_numbers():
    with pytest.raises(
        InputError, match=r"draws what was measured for every head, but the data has 'weights'\. Measure"
    ):
        draw(dataset()[["weights"]], "heads")
