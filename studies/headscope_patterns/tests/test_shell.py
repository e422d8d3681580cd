"""`headscope patterns` in the shell, with very small networks."""

from functools import partial

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.results.store import open_result
from headscope_patterns.labels.labelled_maps import save_labels, save_maps
from headscope_patterns.tests.labelled_set import make_labelled_set
from headscope_patterns.tests.test_train import SMALLEST
from headscope_patterns.train import training_set

run = partial(CliRunner().invoke, app)


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    labelled = make_labelled_set(100, tokens=(12, 24), heads=40, texts=50)
    save_maps(labelled.maps, folder)
    save_labels(labelled.passes, folder)
    return folder


@pytest.fixture(autouse=True)
def small_networks(monkeypatch):
    select = partial(training_set.select_training_set, settings=SMALLEST)
    monkeypatch.setattr(training_set, "select_training_set", select)


def test_a_classifier_is_trained_and_its_evaluation_written(labels, tmp_path):
    out, evaluation = tmp_path / "mine.safetensors", tmp_path / "mine.nc"
    done = run(["patterns", "train", "--labels", str(labels), "-o", str(out), "--evaluation", str(evaluation)])
    assert done.exit_code == 0, done.output
    assert "macro-F1       cnn" in done.output
    assert f"use it as patterns:classifier={out}" in done.output
    assert open_result(evaluation).sizes["map"] == 100


def test_confusions_and_typical_maps_are_drawn_from_an_evaluation(labels, tmp_path):
    data, selected = tmp_path / "patterns.nc", tmp_path / "typical.nc"
    steps = [
        ["patterns", "evaluate", "--labels", str(labels), "--pass", "first", "-o", str(data)],
        ["patterns", "typical", str(data), "--labels", str(labels), "--count", "2", "-o", str(selected)],
        ["draw", str(data), "confusion", "-o", str(tmp_path / "a.svg"), "--classifier", "rules"],
        ["draw", str(selected), "typical_maps", "-o", str(tmp_path / "b.svg")],
    ]
    for step in steps:
        done = run(step)
        assert done.exit_code == 0, done.output
    typical = open_result(selected)
    assert typical.sizes["map"] == 10
    assert typical["label"].values.tolist() == sorted(typical["label"].values, key=list(typical["label"].values).index)


def test_typical_maps_of_other_labels_raise(labels, tmp_path):
    data = tmp_path / "patterns.nc"
    run(["patterns", "evaluate", "--labels", str(labels), "-o", str(data)])
    done = run(["patterns", "typical", str(data), "-o", str(tmp_path / "typical.nc")])
    assert done.exit_code == 2
    assert "This evaluation is of other maps: 's0000' is not among the" in " ".join(done.output.split())


def test_invalid_paths_raise_before_training(labels, tmp_path):
    done = run(["patterns", "train", "--labels", str(labels), "-o", str(tmp_path / "mine.pt")])
    assert done.exit_code == 2
    assert "A classifier is saved as .safetensors, but 'mine.pt' is not" in " ".join(done.output.split())
    done = run(["patterns", "evaluate", "--labels", str(tmp_path)])
    assert done.exit_code == 2
    assert "is not a folder of labelled maps" in " ".join(done.output.split())
