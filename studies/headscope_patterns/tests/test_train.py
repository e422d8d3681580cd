"""Training and evaluation on a synthetic labelled set, with very small networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from headscope.patterns.classify.classify import classify
from headscope.patterns.classify.cnn import DEFAULT_SETTINGS, read_metadata, write_cnn
from headscope.patterns.classify.normalize import normalize_maps
from headscope.results.store import open_result, save
from headscope_patterns.tests.labelled_set import drop_second_pass, make_labelled_set
from headscope_patterns.train.evaluation import format_evaluation
from headscope_patterns.train.synthetic import make_synthetic_maps
from headscope_patterns.train.train import evaluate, train
from headscope_patterns.train.training_set import pad_maps, select_training_set

SMALL = replace(DEFAULT_SETTINGS, side=8, widths=(4,) * 8, middle=4, nets=2, epochs=2, hand_built=15, folds=2)
SMALLEST = replace(SMALL, epochs=1, nets=1)


@pytest.fixture(scope="module")
def labelled():
    return make_labelled_set(100, tokens=(12, 24), heads=40, texts=50)


@pytest.fixture(scope="module")
def trained(labelled):
    training, epochs = select_training_set(labelled, settings=SMALL), []
    cnn, data = train(training, epochs.append)
    assert sum(epochs) == training.epochs + SMALL.epochs
    return cnn, data


def test_the_same_seed_gives_the_same_classifier(labelled, trained, tmp_path):
    cnn, data = trained
    second_cnn, second_data = train(select_training_set(labelled, settings=SMALL))
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    write_cnn(cnn, first)
    write_cnn(second_cnn, second)
    assert first.read_bytes() == second.read_bytes()
    assert second_data.identical(data)


def test_training_restores_the_global_random_state(labelled):
    before = torch.random.get_rng_state()
    evaluate(select_training_set(labelled, settings=SMALLEST))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_saved_classifier_gives_the_same_probabilities_and_has_its_metadata(trained, tmp_path):
    cnn, data = trained
    path = tmp_path / "mine.safetensors"
    write_cnn(cnn, path)
    maps = pad_maps(make_synthetic_maps(8))
    probabilities = classify(*maps, str(path))
    assert torch.allclose(probabilities, cnn(normalize_maps(*maps)), atol=1e-6)
    assert probabilities.sum(-1).tolist() == pytest.approx([1.0] * 8)
    metadata = read_metadata(path)
    assert (metadata["labels"], metadata["labelled_maps"], metadata["seed"]) == ("first", 100, 0)
    assert metadata["settings"]["nets"] == 2
    table = np.zeros((5, 6))
    for label, predicted in zip(metadata["errors"]["label"], metadata["errors"]["both"], strict=True):
        table[label, predicted] += 1
    assert np.array_equal(table, data["confusion"].sel(classifier="both", subset="random"))


def test_every_map_is_evaluated_once_by_every_classifier(trained):
    _, data = trained
    assert (data["confusion"].sel(subset="all").sum(("pattern", "predicted")) == 100).all()
    assert data["confusion"].sel(subset="random", classifier="cnn").sum() == 75
    assert list(data["classifier"].values) == ["cnn", "rules", "both", "nearest", "majority"]
    assert set(data["subset"].values) >= {"all", "random", "topped_up", "raw", "effective", "20–40 tokens"}
    assert (data["macro_f1_low"] <= data["macro_f1"] + 1e-9).all()
    assert (data["macro_f1_high"] >= data["macro_f1"] - 1e-9).all()
    f1 = data["macro_f1"].sel(subset="all")
    assert float(f1.sel(classifier="rules")) > 0.55
    assert float(f1.sel(classifier="majority")) < 0.2
    gain = f1.sel(classifier="cnn") - f1.sel(classifier="nearest")
    assert float(data["gain"].sel(rival="nearest")) == pytest.approx(float(gain))


def test_the_provenance_describes_the_cross_validation(trained):
    facts = read_provenance(trained[1])
    assert facts["trainings"] >= 2
    assert 0 < facts["training_maps_least"] < 100
    assert facts["dropped_maps_mean"] >= 0
    assert facts["labels_hash"]


def test_two_passes_give_the_inter_annotator_agreement(labelled, trained):
    data = trained[1]
    assert int(data["passes_maps"]) == 50
    assert 0.6 < float(data["passes_f1_low"]) < float(data["passes_f1"]) <= 1
    ratio = data["cnn_f1"] / data["passes_f1"]
    assert ratio.values == pytest.approx(data["cnn_ratio"].values)
    single = evaluate(select_training_set(drop_second_pass(labelled), settings=SMALLEST))
    assert "passes_f1" not in single


def test_an_evaluation_is_saved_and_formatted_as_text(trained, tmp_path):
    data = trained[1]
    assert open_result(save(data, tmp_path / "a.nc")).identical(data)
    text = format_evaluation(data)
    assert "macro-F1       cnn" in text
    assert "between passes: F1" in text
    assert "vertical + diagonal precision" in text


def test_missing_labels_raise(labelled):
    with pytest.raises(InputError, match="These maps have no labels. Label them first"):
        select_training_set(replace(labelled, passes={}))
    one_class = {"first": {item.source.id: "block" for item in labelled.maps[:50]}}
    with pytest.raises(InputError, match="at least 5 labelled maps, but in the pass 'first' vertical has 0"):
        select_training_set(replace(labelled, passes=one_class))


def test_maps_of_the_part_test_change_neither_networks_nor_folds(labelled, trained, tmp_path):
    added = make_labelled_set(20, seed=5, tokens=(12, 24), heads=40, texts=50)
    maps = [
        replace(item, source=replace(item.source, id=f"t{index}", part="test", lens="effective:keys=paper"))
        for index, item in enumerate(added.maps)
    ]
    passes = {"first": labelled.passes["first"] | {item.source.id: "block" for item in maps}}
    training = select_training_set(replace(labelled, maps=(*labelled.maps, *maps), passes=passes), settings=SMALL)
    cnn, data = train(training)
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    write_cnn(replace(trained[0], metadata={}), first)
    write_cnn(replace(cnn, metadata={}), second)
    assert first.read_bytes() == second.read_bytes()
    old = data["said"].sel(map=trained[1]["map"].values)
    assert (old == trained[1]["said"]).all()
    assert cnn.metadata["errors"]["lens"].count("effective:keys=paper") == 20
