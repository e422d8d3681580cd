"""Fine-tuned models, their folders and their stamps."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.engine.load import load
from tests.models import network, tiny, tokenizer
from tests.training.data import choosing, labeled, paired, plain

FAST = {"learning_rate": 3e-3, "max_length": 32, "device": "cpu", "progress": False}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A tiny BERT that tells cats from dogs, and its folder."""
    out = tmp_path_factory.mktemp("tuned") / "model"
    return hs.finetune(tiny("bert"), labeled(64), dev=labeled(20, start=100), out=out, epochs=4, **FAST), out


def stamp(out):
    return json.loads((out / "finetune.json").read_text(encoding="utf-8"))


def test_a_model_learns_classes(tuned):
    model, out = tuned
    assert float(hs.score(model, labeled(40, start=200), progress=False)["accuracy"]) > 0.9
    assert stamp(out)["dev"][-1]["accuracy"] > 0.9


def test_the_folder_is_a_complete_model(tuned):
    model, out = tuned
    again = load(out, device="cpu")
    assert again.weights_hash == model.weights_hash == stamp(out)["tuned_hash"]
    assert again.network.config.id2label == {0: "cat", 1: "dog"}
    assert {path.name for path in out.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "finetune.json",
    }


def test_the_stamp_holds_the_base_model_settings_and_scores(tuned):
    record = stamp(tuned[1])
    facts = record["facts"]
    assert facts["weights_hash"] == tiny("bert").weights_hash
    assert facts["new_weights"] == ["classifier.bias", "classifier.weight"]
    assert (facts["task"], facts["classes"], facts["n"], facts["n_dev"]) == ("classification", ["cat", "dog"], 64, 20)
    assert facts["majority"] == 0.5
    assert [scores["epoch"] for scores in record["dev"]] == [1, 2, 3, 4]
    assert record["loss"][-1][0] == 4 * 8
    assert record["loss"][-1][1] < record["loss"][0][1] / 1.5
    assert {"seconds", "threads", "torch", "transformers"} <= set(record["circumstances"])


def test_a_model_learns_numbers(tmp_path):
    model = hs.finetune(tiny("bert"), paired(60), out=tmp_path / "m", epochs=12, **FAST)
    assert stamp(tmp_path / "m")["facts"]["task"] == "regression"
    assert float(hs.score(model, paired(60), progress=False)["pearson"]) > 0.7


@pytest.mark.parametrize(("rows", "metric"), [(labeled, "accuracy"), (paired, "pearson")])
def test_mpnet_learns_and_is_scored_with_effective_attention_in_place(rows, metric, tmp_path):
    model = hs.finetune(tiny("mpnet"), rows(40), out=tmp_path / "m", epochs=8, **FAST)
    plain, same = (hs.score(model, rows(40), edit=edit, progress=False) for edit in (None, "effective_attention"))
    assert float(plain[metric]) > 0.7
    outputs = "logits" if "logits" in plain else "prediction"
    np.testing.assert_allclose(same[outputs], plain[outputs], atol=1e-4)


def test_a_model_learns_masked_language_modelling(tmp_path):
    model = hs.finetune(tiny("bert"), plain(40), out=tmp_path / "m", task="mlm", epochs=10, **FAST)
    tied = model.network.cls.predictions.decoder.weight is model.network.bert.embeddings.word_embeddings.weight
    assert tied
    assert float(hs.score(model, plain(40), progress=False)["perplexity"]) < 5  # of 38 words


def test_a_model_learns_to_choose(tmp_path):
    model = hs.finetune(tiny("bert"), choosing(60), out=tmp_path / "m", epochs=10, **FAST)
    assert stamp(tmp_path / "m")["facts"] | {"task": "choice", "choices": 2} == stamp(tmp_path / "m")["facts"]
    assert float(hs.score(model, choosing(60), progress=False)["accuracy"]) > 0.9


def test_choices_are_read_alone_where_texts_are_empty(tmp_path):
    data = [replace(example, text="", columns={"choices": ("the cat", "a dog")}) for example in choosing(8)]
    model = hs.finetune(tiny("bert"), data, out=tmp_path / "m", epochs=1, **FAST)
    result = hs.score(model, data, progress=False)
    with torch.no_grad():
        batch = tokenizer()(["the cat", "a dog"], return_tensors="pt")
        alone = model.network(**{name: tensor[None] for name, tensor in batch.items()}).logits[0]
    assert result["logits"][0].values == pytest.approx(alone.numpy(), abs=1e-5)


def test_a_config_starts_from_scratch(tmp_path):
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer()), n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=2, eos_token_id=3
    )
    options = {"tokenizer": tokenizer(), "epochs": 1, **FAST}
    model = hs.finetune(config, labeled(12), dev=labeled(4, start=50), out=tmp_path / "m", **options)
    facts = stamp(tmp_path / "m")["facts"]
    assert (facts["from_scratch"], facts["weights_hash"], facts["new_weights"]) == (True, None, "all")
    assert type(model.network).__name__ == "GPT2ForSequenceClassification"
    assert hs.score(model, labeled(6), batch_size=4, progress=False).sizes["example"] == 6


def test_a_pretrained_model_can_be_trained_from_scratch(tmp_path):
    settings = {"epochs": 1, **FAST, "learning_rate": 1e-9}  # so that weights stay as initialized
    pretrained = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "kept", **settings)
    fresh = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "fresh", from_scratch=True, **settings)
    spread = [
        float(model.network.bert.encoder.layer[0].output.dense.weight.detach().std()) for model in (pretrained, fresh)
    ]
    assert spread[0] == pytest.approx(0.12, rel=0.1)  # six times the standard deviation of BERT's initialization
    assert spread[1] == pytest.approx(0.02, rel=0.1)


def test_the_pooler_is_loaded_from_the_folder_of_a_model_with_another_head(tmp_path):
    """The folder of bert-base-uncased says BertForMaskedLM, which has no pooler, though the weights include one."""
    whole = transformers.BertForPreTraining(network("bert").config)
    whole.save_pretrained(tmp_path / "base")
    tokenizer().save_pretrained(tmp_path / "base")
    config = json.loads((tmp_path / "base" / "config.json").read_text())
    (tmp_path / "base" / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    settings = {"epochs": 1, **FAST, "learning_rate": 1e-9}
    model = hs.finetune(tmp_path / "base", labeled(8), out=tmp_path / "m", **settings)
    assert stamp(tmp_path / "m")["facts"]["new_weights"] == ["classifier.bias", "classifier.weight"]
    torch.testing.assert_close(model.network.bert.pooler.dense.weight, whole.bert.pooler.dense.weight)


def test_weights_changed_after_loading_are_tuned(tmp_path):
    network("bert").save_pretrained(tmp_path / "base")
    tokenizer().save_pretrained(tmp_path / "base")
    base = load(tmp_path / "base", device="cpu")
    with torch.no_grad():
        base.network.encoder.layer[0].output.dense.weight.zero_()
    model = hs.finetune(base, labeled(8), out=tmp_path / "m", epochs=1, **{**FAST, "learning_rate": 1e-9})
    assert float(model.network.bert.encoder.layer[0].output.dense.weight.detach().abs().max()) < 1e-6


def test_a_limit_samples_the_training_examples(tmp_path):
    hs.finetune(tiny("bert"), labeled(40), out=tmp_path / "m", epochs=1, limit=10, **FAST)
    facts = stamp(tmp_path / "m")["facts"]
    assert (facts["n"], facts["limit"]) == (10, 10)


def test_the_inferred_task_is_printed_with_the_progress(tmp_path, capsys):
    hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", epochs=1, **{**FAST, "progress": True})
    output = capsys.readouterr()
    assert output.err.startswith(
        "Task: classification, because labels are names of classes; 8 training and 0 dev examples; "
        "classes: cat, dog; majority class: 50.0%.\n"
    )
    assert output.out == ""


def test_the_same_settings_give_the_same_weights(tmp_path):
    first, second, different = (
        hs.finetune(tiny("bert"), labeled(12), out=tmp_path / name, epochs=1, seed=seed, **FAST).weights_hash
        for name, seed in (("first", 0), ("second", 0), ("different", 1))
    )
    assert first == second != different


def test_random_states_are_restored(tmp_path):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", epochs=1, **FAST)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()


def test_the_given_model_is_unchanged(tmp_path):
    before = tiny("bert").weights_hash
    hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", epochs=1, **FAST)
    assert tiny("bert").weights_hash == before


def test_half_precision_trains_in_float32(tmp_path):
    network("bert").half().save_pretrained(tmp_path / "half")
    tokenizer().save_pretrained(tmp_path / "half")
    model = hs.finetune(tmp_path / "half", labeled(8), out=tmp_path / "m", epochs=1, **FAST)
    assert model.network.dtype == torch.float32
    assert load(tmp_path / "m").network.config.dtype == torch.float32


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_pruned_model_is_tuned_and_stays_pruned(kind, tmp_path):
    pruned = hs.prune(tiny(kind), ["L0", "L1H2"])
    model = hs.finetune(pruned, labeled(32), out=tmp_path / "first", epochs=1, **FAST)
    assert model.network.config.headscope_pruned_heads == ["L0H0", "L0H1", "L0H2", "L0H3", "L1H2"]
    base = model.network.base_model
    assert base.num_parameters() - pruned.network.num_parameters() == 0
    assert model.weights_hash == stamp(tmp_path / "first")["tuned_hash"]
    start = hs.finetune(pruned, labeled(32), out=tmp_path / "none", epochs=1, **(FAST | {"learning_rate": 1e-12}))
    for name, weight in pruned.network.state_dict().items():
        torch.testing.assert_close(start.network.base_model.state_dict()[name], weight, rtol=0, atol=1e-6)
    again = hs.finetune(tmp_path / "first", labeled(32), out=tmp_path / "second", epochs=1, **FAST)
    assert again.network.config.headscope_pruned_heads == model.network.config.headscope_pruned_heads
    new = hs.finetune(pruned, labeled(32), out=tmp_path / "new", epochs=1, from_scratch=True, **FAST)
    assert new.network.num_parameters() == model.network.num_parameters()
