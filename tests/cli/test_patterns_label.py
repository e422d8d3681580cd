"""Maps drawn to be labelled, and labelled by pressing keys."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.patterns.labels.labelled import open_labelled
from tests.measuring.data import examples, saved_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight maps of a tiny model, drawn with the shell."""
    place = tmp_path_factory.mktemp("label")
    model = saved_model(place / "model")
    (place / "texts.jsonl").write_text("".join(json.dumps({"text": each.text}) + "\n" for each in examples(5)))
    asked = ("sheet", place / "texts.jsonl", "--model", model, "--lens", "raw", "--lens", "effective", "--many", "8")
    done = pressed("", *asked, "-o", place / "maps")
    assert done.exit_code == 0, done.output
    assert "Wrote 8 maps and 2 sheets" in done.output
    again = pressed("", *asked, "-o", place / "maps")
    assert "holds something already. Give the path of a new folder." in again.output
    return place / "maps"


def pressed(keys, *asked):
    return CliRunner().invoke(app, ["patterns", *map(str, asked)], input=keys)


def test_drawn_maps_are_different_and_say_where_they_come_from(folder):
    maps = open_labelled(folder).maps
    assert len({(each.source.text, each.source.lens, each.source.group) for each in maps}) == 8
    for each in maps:
        assert each.weights.shape == (len(each.source.tokens),) * 2
        if each.source.lens == "raw":
            np.testing.assert_allclose(each.weights.sum(-1), 1, atol=0.05)  # one byte a weight
    assert len(list(folder.glob("sheet-*.png"))) == 2


def test_every_key_is_a_label_that_is_saved_at_once(folder):
    done = pressed("vsdumq", "label", folder, "--pass", "anna")
    assert "2 of 8 maps have a label of anna" in done.output
    assert open_labelled(folder).passes["anna"] == {"m0001": "vertical", "m0003": "vertical_diagonal"}


def test_a_pass_goes_on_where_it_stopped_and_knows_nothing_of_others(folder):
    pressed("bq", "label", folder, "--pass", "berta")
    done = pressed("h" * 7, "label", folder, "--pass", "berta")
    assert "8 of 8 maps have a label of berta" in done.output
    assert list(open_labelled(folder).passes["berta"].values()) == ["block"] + ["heterogeneous"] * 7


def test_without_a_terminal_there_is_a_sentence(folder, monkeypatch):
    def no_terminal():
        raise OSError(6, "No such device or address")

    monkeypatch.setattr("typer.getchar", no_terminal)
    done = pressed("v", "label", folder, "--pass", "carla")
    assert done.exit_code == 2
    assert "there is no terminal to press them in" in done.output
