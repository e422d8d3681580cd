"""Maps are sampled for labelling, and labelled with single keys."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope_patterns.labels.labelled_maps import read_labelled_maps
from tests.measuring.data import examples, saved_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight maps of a small model, sampled with the shell."""
    root = tmp_path_factory.mktemp("label")
    model = saved_model(root / "model")
    (root / "texts.jsonl").write_text("".join(json.dumps({"text": example.text}) + "\n" for example in examples(5)))
    command = ("sheet", root / "texts.jsonl", "--model", model, "--lens", "raw", "--lens", "effective", "--count", "8")
    done = press("", *command, "-o", root / "maps")
    assert done.exit_code == 0, done.output
    assert "Wrote 8 maps and 2 sheets" in done.output
    repeated = press("", *command, "-o", root / "maps")
    assert "is not empty. Give the path of a new folder." in repeated.output
    return root / "maps"


def press(keys, *arguments):
    return CliRunner().invoke(app, ["patterns", *map(str, arguments)], input=keys)


def test_sampled_maps_are_distinct_and_have_their_source(folder):
    maps = read_labelled_maps(folder).maps
    assert len({(item.source.text, item.source.lens, item.source.head_group) for item in maps}) == 8
    for item in maps:
        assert item.weights.shape == (len(item.source.tokens),) * 2
        if item.source.lens == "raw":
            np.testing.assert_allclose(item.weights.sum(-1), 1, atol=0.05)  # one byte per weight
    assert len(list(folder.glob("sheet-*.png"))) == 2


def test_every_label_is_saved_immediately(folder):
    done = press("vsdumq", "label", folder, "--pass", "anna")
    assert "2 of 8 maps have a label of anna" in done.output
    assert read_labelled_maps(folder).passes["anna"] == {"m0001": "vertical", "m0003": "vertical_diagonal"}


def test_a_pass_resumes_and_is_independent_of_other_passes(folder):
    press("bq", "label", folder, "--pass", "berta")
    done = press("h" * 7, "label", folder, "--pass", "berta")
    assert "8 of 8 maps have a label of berta" in done.output
    assert list(read_labelled_maps(folder).passes["berta"].values()) == ["block"] + ["heterogeneous"] * 7


def test_labelling_without_a_terminal_raises(folder, monkeypatch):
    def no_terminal():
        raise OSError(6, "No such device or address")

    monkeypatch.setattr("typer.getchar", no_terminal)
    done = press("v", "label", folder, "--pass", "carla")
    assert done.exit_code == 2
    assert "but there is no terminal" in done.output


def test_a_name_that_no_file_system_takes_is_refused_at_once(tmp_path):
    done = press("", "sheet", tmp_path / "texts.jsonl", "-o", "n" * 300)
    assert done.exit_code == 2
    assert "bytes, and at most 240 are possible. Give a shorter one." in " ".join(done.output.split())
