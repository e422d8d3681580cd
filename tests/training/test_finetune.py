"""Fine-tuning gives a model that has learned, in a folder that says where it comes from."""

import json

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.engine.load import load
from tests.models import network, tiny, tokenizer
from tests.training.data import labelled, paired, plain

FAST = {"learning_rate": 3e-3, "max_length": 32, "device": "cpu", "progress": False}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A tiny BERT that tells cats from dogs, and its folder."""
    out = tmp_path_factory.mktemp("tuned") / "model"
    return hs.finetune(tiny("bert"), labelled(64), dev=labelled(20, start=100), out=out, epochs=4, **FAST), out


def stamp(out):
    return json.loads((out / "finetune.json").read_text(encoding="utf-8"))


def test_a_model_learns_classes(tuned):
    model, out = tuned
    assert float(hs.score(model, labelled(40, start=200), progress=False)["accuracy"]) > 0.9
    assert stamp(out)["dev"][-1]["accuracy"] > 0.9


def test_the_folder_is_a_complete_model(tuned):
    model, out = tuned
    again = load(out, device="cpu")
    assert again.weights_hash == model.weights_hash == stamp(out)["tuned_hash"]
    assert again.network.config.id2label == {0: "cat", 1: "dog"}
    assert {path.name for path in out.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "finetune.json",
    }  # fmt: skip


def test_the_stamp_says_where_the_model_comes_from(tuned):
    found = stamp(tuned[1])
    facts = found["facts"]
    assert facts["weights_hash"] == tiny("bert").weights_hash
    assert facts["new_weights"] == ["classifier.bias", "classifier.weight"]
    assert (facts["task"], facts["classes"], facts["n"], facts["n_dev"]) == ("classification", ["cat", "dog"], 64, 20)
    assert facts["majority"] == 0.5
    assert [each["epoch"] for each in found["dev"]] == [1, 2, 3, 4]
    assert found["loss"][-1][0] == 4 * 8
    assert found["loss"][-1][1] < found["loss"][0][1] / 1.5
    assert {"seconds", "threads", "torch", "transformers"} <= set(found["circumstances"])


def test_a_model_learns_numbers(tmp_path):
    model = hs.finetune(tiny("bert"), paired(60), out=tmp_path / "m", epochs=12, **FAST)
    assert stamp(tmp_path / "m")["facts"]["task"] == "regression"
    assert float(hs.score(model, paired(60), progress=False)["pearson"]) > 0.7


def test_a_model_learns_masked_words(tmp_path):
    model = hs.finetune(tiny("bert"), plain(40), out=tmp_path / "m", task="mlm", epochs=10, **FAST)
    tied = model.network.cls.predictions.decoder.weight is model.network.bert.embeddings.word_embeddings.weight
    assert tied
    assert float(hs.score(model, plain(40), progress=False)["perplexity"]) < 5  # of 38 words


def test_the_same_settings_give_the_same_weights(tmp_path):
    one, two, other = (
        hs.finetune(tiny("bert"), labelled(12), out=tmp_path / name, epochs=1, seed=seed, **FAST).weights_hash
        for name, seed in (("one", 0), ("two", 0), ("other", 1))
    )
    assert one == two != other


def test_chance_elsewhere_goes_on_as_if_nothing_had_been(tmp_path):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    hs.finetune(tiny("bert"), labelled(8), out=tmp_path / "m", epochs=1, **FAST)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()


def test_the_model_in_hand_is_left_as_it_was(tmp_path):
    before = tiny("bert").weights_hash
    hs.finetune(tiny("bert"), labelled(8), out=tmp_path / "m", epochs=1, **FAST)
    assert tiny("bert").weights_hash == before


def test_half_precision_trains_in_float32(tmp_path):
    network("bert").half().save_pretrained(tmp_path / "half")
    tokenizer().save_pretrained(tmp_path / "half")
    model = hs.finetune(tmp_path / "half", labelled(8), out=tmp_path / "m", epochs=1, **FAST)
    assert model.network.dtype == torch.float32
    assert load(tmp_path / "m").network.config.dtype == torch.float32
