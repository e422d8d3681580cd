"""`headscope patterns` in the shell, with what takes long left out."""

from functools import partial

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.patterns.classify.settings import USUAL
from headscope.patterns.labels.labelled import save_labels, save_maps
from headscope.patterns.train import train as training
from headscope.results.store import open_result
from tests.patterns.synthetic import synthetic
from tests.patterns.test_train import LEAST

run = partial(CliRunner().invoke, app)


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    place = tmp_path_factory.mktemp("labels")
    held = synthetic(100, tokens=(12, 24), heads=40, texts=50)
    save_maps(held.maps, place)
    save_labels(held.passes, place)
    return place


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("train", "evaluate", "epochs"):
        monkeypatch.setattr(training, name, partial(getattr(training, name), settings=LEAST))
    assert USUAL.nets > LEAST.nets


def test_a_classifier_is_trained_and_its_evaluation_written(labels, tmp_path):
    out, evaluation = tmp_path / "mine.safetensors", tmp_path / "mine.nc"
    done = run(["patterns", "train", "--labels", str(labels), "-o", str(out), "--evaluation", str(evaluation)])
    assert done.exit_code == 0, done.output
    assert "macro-F1       cnn" in done.output
    assert f"use it as patterns:classifier={out}" in done.output
    assert open_result(evaluation).sizes["map"] == 100


def test_an_evaluation_gives_confusions_and_typical_maps_to_draw(labels, tmp_path):
    data, chosen = tmp_path / "patterns.nc", tmp_path / "typical.nc"
    steps = [
        ["patterns", "evaluate", "--labels", str(labels), "--pass", "first", "-o", str(data)],
        ["patterns", "typical", str(data), "--labels", str(labels), "--many", "2", "-o", str(chosen)],
        ["draw", str(data), "confusion", "-o", str(tmp_path / "a.svg"), "--classifier", "rules"],
        ["draw", str(chosen), "typical_maps", "-o", str(tmp_path / "b.svg")],
    ]
    for step in steps:
        done = run(step)
        assert done.exit_code == 0, done.output
    typical = open_result(chosen)
    assert typical.sizes["map"] == 10
    assert typical["label"].values.tolist() == sorted(typical["label"].values, key=list(typical["label"].values).index)


def test_typical_maps_of_other_labels_are_refused(labels, tmp_path):
    data = tmp_path / "patterns.nc"
    run(["patterns", "evaluate", "--labels", str(labels), "-o", str(data)])
    done = run(["patterns", "typical", str(data), "-o", str(tmp_path / "typical.nc")])
    assert done.exit_code == 2
    assert "This evaluation is of other maps: 's0000' is not among the" in " ".join(done.output.split())


def test_what_is_wrong_is_said_before_anything_is_trained(labels, tmp_path):
    done = run(["patterns", "train", "--labels", str(labels), "-o", str(tmp_path / "mine.pt")])
    assert done.exit_code == 1
    assert "A classifier is saved as .safetensors, but 'mine.pt' is not" in " ".join(done.output.split())
    done = run(["patterns", "evaluate", "--labels", str(tmp_path)])
    assert done.exit_code == 2
    assert "is no folder of labelled maps" in " ".join(done.output.split())
