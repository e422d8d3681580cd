"""From labels to a classifier and its evaluation, on a set that nobody looked at, with networks too small for it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headscope.core.errors import InputError
from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.classify import classify
from headscope.patterns.classify.cnn import Net, about_cnn, fused, read_cnn, seen_by_net, write_cnn
from headscope.patterns.classify.row_weights import sizes_of
from headscope.patterns.classify.settings import USUAL
from headscope.patterns.train.augment import augmented
from headscope.patterns.train.fit import padded
from headscope.patterns.train.hand_built import hand_built
from headscope.patterns.train.held_out import softened, temperature
from headscope.patterns.train.summary import summary
from headscope.patterns.train.train import epochs, evaluate, train
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result, save
from tests.patterns.synthetic import one_pass, synthetic

TINY = replace(USUAL, side=8, widths=(4,) * 8, middle=4, nets=2, epochs=2, hand_built=15, folds=2)
LEAST = replace(TINY, epochs=1, nets=1)


@pytest.fixture(scope="module")
def labelled():
    return synthetic(100, tokens=(12, 24), heads=40, texts=50)


@pytest.fixture(scope="module")
def trained(labelled):
    said = []
    cnn, data = train(labelled, settings=TINY, said=said.append)
    assert sum(said) == epochs(labelled, settings=TINY) + TINY.epochs
    return cnn, data


def test_the_same_seed_gives_the_same_classifier(labelled, trained, tmp_path):
    cnn, data = trained
    again, other = train(labelled, settings=TINY)
    for place, each in enumerate((cnn, again)):
        write_cnn(each, tmp_path / f"{place}.safetensors")
    assert (tmp_path / "0.safetensors").read_bytes() == (tmp_path / "1.safetensors").read_bytes()
    assert other.identical(data)


def test_training_leaves_the_global_random_numbers_alone(labelled):
    before = torch.random.get_rng_state()
    evaluate(labelled, settings=LEAST)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_saved_classifier_says_the_same_and_where_it_comes_from(labelled, trained, tmp_path):
    cnn, data = trained
    path = tmp_path / "mine.safetensors"
    write_cnn(cnn, path)
    given = padded(hand_built(8))
    likely = classify(*given, str(path))
    assert torch.allclose(likely, cnn(sizes_of(*given)), atol=1e-6)
    assert likely.sum(-1).tolist() == pytest.approx([1.0] * 8)
    about = about_cnn(path)
    assert (about["labels"], about["labelled_maps"], about["seed"]) == ("first", 100, 0)
    assert about["settings"]["nets"] == 2
    assert np.array(about["errors"]["both"]).shape == (5, 6)
    assert np.array_equal(about["errors"]["cnn"], data["confusion"].sel(classifier="cnn", subset="random"))


def test_every_map_is_evaluated_once_by_every_classifier(labelled, trained):
    _, data = trained
    assert (data["confusion"].sel(subset="all").sum(("pattern", "predicted")) == 100).all()
    assert data["confusion"].sel(subset="random", classifier="cnn").sum() == 75
    assert list(data["classifier"].values) == ["cnn", "rules", "both", "nearest", "majority"]
    assert set(data["subset"].values) >= {"all", "random", "topped_up", "raw", "effective", "1–40 tokens"}
    assert (data["macro_f1_low"] <= data["macro_f1"] + 1e-9).all()
    assert (data["macro_f1_high"] >= data["macro_f1"] - 1e-9).all()
    best = data["macro_f1"].sel(subset="all")
    assert float(best.sel(classifier="rules")) > 0.55
    assert float(best.sel(classifier="majority")) < 0.2
    gain = best.sel(classifier="cnn") - best.sel(classifier="nearest")
    assert float(data["gain"].sel(rival="nearest")) == pytest.approx(float(gain))


def test_what_was_held_out_is_stamped(trained):
    facts = read_provenance(trained[1])
    assert facts["trainings"] >= 2
    assert 0 < facts["training_maps_least"] < 100
    assert facts["dropped_maps_mean"] >= 0
    assert facts["labels_hash"]


def test_two_passes_say_what_can_be_reached(labelled, trained):
    data = trained[1]
    assert int(data["passes_maps"]) == 50
    assert 0.6 < float(data["passes_f1_low"]) < float(data["passes_f1"]) <= 1
    ratio = data["cnn_f1"] / data["passes_f1"]
    assert ratio.values == pytest.approx(data["cnn_ratio"].values)
    alone = evaluate(one_pass(labelled), settings=LEAST)
    assert "passes_f1" not in alone


def test_an_evaluation_is_saved_and_told_in_words(trained, tmp_path):
    data = trained[1]
    assert open_result(save(data, tmp_path / "a.nc")).identical(data)
    text = summary(data)
    assert "macro-F1       cnn" in text
    assert "between passes: F1" in text
    assert "vertical + diagonal precision" in text


def test_networks_without_their_normalisation_say_the_same():
    torch.manual_seed(0)
    net = Net(TINY, normalised=True)
    seen = seen_by_net(sizes_of(*padded(hand_built(6))), TINY.side)
    net(*seen)  # the running means are no longer 0
    assert torch.allclose(fused(net, TINY)(*seen), net.eval()(*seen), atol=1e-5)


def test_a_changed_map_keeps_its_columns_of_most_weight_and_its_texts():
    maps = hand_built(10, seed=2)
    weights, real, segments = augmented(*padded(maps), torch.Generator().manual_seed(0))
    assert not torch.equal(weights[0].abs(), padded(maps)[0][0].abs())
    cut = real.sum(-1) < torch.tensor([len(each.segments) for each in maps])
    assert cut.any()
    sinks = weights.sum(1).argmax(-1)
    assert real.gather(1, sinks[:, None]).all()
    assert ((segments == 0) | (segments == 1)).all()


def test_a_temperature_brings_confidence_down_to_the_share_that_is_right():
    random = np.random.default_rng(0)
    places = random.integers(0, 5, 500)
    right = random.random(500) < 0.6
    said = np.where(right, places, (places + 1) % 5)
    scores = 20.0 * np.eye(5)[said]
    assert temperature(scores, places) > 5
    confidence = softened(scores, temperature(scores, places)).max(-1).mean()
    assert confidence == pytest.approx(right.mean(), abs=0.02)


def test_what_is_missing_is_said(labelled, tmp_path):
    with pytest.raises(InputError, match="These maps have no labels. Label them first"):
        evaluate(replace(labelled, passes={}))
    few = {"first": {each.source.id: "block" for each in labelled.maps[:50]}}
    with pytest.raises(InputError, match="at least 5 labelled maps, but in the pass 'first' vertical has 0"):
        evaluate(replace(labelled, passes=few))
    with pytest.raises(InputError, match="There is no classifier of patterns at"):
        read_cnn(tmp_path / "none.safetensors", torch.device("cpu"))
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(InputError, match="is no classifier of patterns that headscope wrote"):
        read_cnn(tmp_path / "text.safetensors", torch.device("cpu"))
    with pytest.raises(InputError, match="No classifier of patterns is called 'cnm'"):
        classify(torch.rand(1, 5, 5), torch.ones(1, 5, dtype=torch.bool), None, "cnm")


def test_classes_of_the_bundled_networks_are_those_of_this_version():
    about = about_cnn()
    assert np.array(about["errors"]["cnn"]).shape == (len(CLASSES), len(CLASSES) + 1)
