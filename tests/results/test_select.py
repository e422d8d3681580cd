import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.results.select import further_axes, head_variables, main_variables, restore_axes, select_variable
from tests.figures.data import measured


def test_main_variables_accompany_no_other():
    assert main_variables(measured()) == head_variables(measured()) == ["entropy", "distance", "token_types"]


def test_a_selected_label_becomes_an_axis_again():
    data = restore_axes(measured().sel(lens="raw", head=1))
    assert data["entropy"].sizes == {"lens": 1, "head": 1, "site": 1, "layer": 2}


def test_a_variable_is_selected_with_what_accompanies_it():
    selected = select_variable(measured(), "token_types", lens="effective", at=("type=verb",))
    assert set(selected.data_vars) == {"value", "sd", "n", "low", "high", "rows"}
    assert further_axes(selected) == []
    assert selected.attrs == {"variable": "token_types", "at": "type verb", "label": "attention weight"}
    expected = measured()["token_types"].sel(lens="effective", site="self", type="verb")
    assert (selected["value"].isel(lens=0).values == expected.values).all()


def test_the_first_variable_is_the_default():
    assert select_variable(measured()).attrs["variable"] == "entropy"


def test_choices_that_cannot_be_read_raise():
    with pytest.raises(UnknownName, match="No measured variable in this data is called 'entropi'"):
        select_variable(measured(), "entropi")
    with pytest.raises(UnknownName, match="No lens in this data is called 'norm'"):
        select_variable(measured(), lens="norm")
    with pytest.raises(InputError, match="Cannot read at='type'. Write axis=label, such as type=noun"):
        select_variable(measured(), "token_types", at=("type",))
    with pytest.raises(UnknownName, match="No type in this data is called 'adverb'"):
        select_variable(measured(), "token_types", at=("type=adverb",))


def test_negative_layers_and_heads_count_from_the_end():
    selected = select_variable(measured(), "token_types", at=("layer=-1", "head=-2"))
    assert selected["layer"].values.tolist() == measured()["layer"].values[-1:].tolist()
    assert selected["head"].values.tolist() == measured()["head"].values[-2:-1].tolist()
