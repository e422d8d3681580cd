"""Scores, their intervals and their stamps."""

import json
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.provenance import read_provenance
from tests.models import network, tiny, tokenizer
from tests.training.data import choosing, labeled, paired, plain
from tests.training.finetuning.test_finetune import FAST, tuned  # noqa: F401  (a fixture)

QUIET = {"progress": False}


def with_head(kind, auto, **changes):
    """A tiny model with a random head."""
    import transformers

    torch.manual_seed(0)
    config = network(kind, **changes).config
    return hs.load(getattr(transformers, auto).from_config(config).eval(), tokenizer=tokenizer())


def test_metrics_are_those_of_the_answers(tuned):  # noqa: F811
    data = labeled(30, start=300)
    result = hs.score(tuned[0], data, **QUIET)
    assert float(result["accuracy"]) == float((result["prediction"] == result["label"]).mean())
    assert float(result["f1"]) == pytest.approx(f1_score(result["label"], result["prediction"]))
    assert ((result["margin"] > 0) == (result["prediction"] == result["label"])).all()
    assert list(result["class"].values) == ["cat", "dog"]
    assert list(result["example"].values) == [example.id for example in data]
    assert float(result["accuracy_low"]) < float(result["accuracy"]) <= float(result["accuracy_high"])
    assert float(result["majority"]) == 0.5


def test_the_logits_are_those_of_single_texts(tuned):  # noqa: F811
    model, data = tuned[0], labeled(9, start=300)
    result = hs.score(model, data, batch_size=4, **QUIET)
    for index, example in enumerate(data):
        with torch.no_grad():
            alone = model.network(**tokenizer()(example.text, return_tensors="pt")).logits[0]
        assert result["logits"][index].values == pytest.approx(alone.numpy(), abs=1e-5)  # padding moves float32 sums


def test_the_dev_score_of_fine_tuning_equals_the_score(tuned):  # noqa: F811
    dev = json.loads((tuned[1] / "finetune.json").read_text())["dev"][-1]
    result = hs.score(str(tuned[1]), labeled(20, start=100), **QUIET)
    assert all(float(result[name]) == dev[name] for name in ("accuracy", "f1", "matthews"))
    assert read_provenance(result)["max_length"] == 32  # as it was tuned


def test_effective_attention_does_not_change_the_logits(tuned):  # noqa: F811
    plainly, edited = (hs.score(tuned[0], labeled(8), edit=edit, **QUIET) for edit in (None, "effective_attention"))
    np.testing.assert_allclose(plainly["logits"], edited["logits"], atol=1e-5)
    assert read_provenance(edited)["edits"] == ["effective_attention"]
    changed = hs.score(tuned[0], labeled(8), edit=["effective_attention:keys=paper"], **QUIET)
    assert np.abs(plainly["logits"] - changed["logits"]).max() > 1e-4


def test_a_score_is_saved_and_opened_without_torch(tuned, tmp_path):  # noqa: F811
    result = hs.score(tuned[0], labeled(8), **QUIET)
    hs.save(result, tmp_path / "score.nc")
    code = (
        "import sys, headscope as hs; found = hs.open_result(sys.argv[1]);"
        "print(float(found['accuracy']), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "score.nc"], capture_output=True, text=True)
    assert done.stdout.split() == [str(float(result["accuracy"])), "False"], done.stderr
    facts = read_provenance(hs.open_result(tmp_path / "score.nc"))
    assert {"command", "model", "weights_hash", "data", "n", "version", "task", "main", "draws", "seed"} <= set(facts)
    assert facts["main"] == "accuracy"


def test_masks_are_the_same_each_time():
    model = with_head("bert", "AutoModelForMaskedLM")
    first, second, batched = (hs.score(model, plain(10), batch_size=size, **QUIET) for size in (32, 32, 3))
    assert (first["loss"] == second["loss"]).all()
    assert (first["tokens"] == batched["tokens"]).all()
    np.testing.assert_allclose(first["loss"], batched["loss"], rtol=1e-4)  # padding moves float32 sums
    assert float(first["perplexity"]) == pytest.approx(float(np.exp(first["loss"].sum() / first["tokens"].sum())))
    assert float(first["perplexity_low"]) < float(first["perplexity"]) < float(first["perplexity_high"])


def test_the_choice_with_the_largest_logit_is_predicted():
    model, data = with_head("bert", "AutoModelForMultipleChoice"), choosing(6, ("the cat sat", "a dog"))
    result = hs.score(model, data, **QUIET)
    with torch.no_grad():
        batch = tokenizer()([data[0].text] * 2, ["the cat sat", "a dog"], padding=True, return_tensors="pt")
        alone = model.network(**{name: tensor[None] for name, tensor in batch.items()}).logits[0]
    assert result["logits"][0].values == pytest.approx(alone.numpy(), abs=1e-5)
    assert result.sizes == {"example": 6, "class": 2}


def test_a_model_without_a_head_for_the_task_is_refused(tuned):  # noqa: F811
    with pytest.raises(InputError, match="is a BertModel, which has no head for any task. Tune it first"):
        hs.score(tiny("bert"), labeled(4), **QUIET)
    with pytest.raises(InputError, match="no head for the task 'regression', only one for 'classification'"):
        hs.score(tuned[0], paired(4), task="regression", **QUIET)
    with pytest.raises(InputError, match="No task is called 'class'"):
        hs.score(tuned[0], labeled(4), task="class", **QUIET)


def test_data_that_does_not_fit_the_model_is_refused(tuned):  # noqa: F811
    with pytest.raises(InputError, match="In the data there are labels 2, but the classes are 0 to 1"):
        hs.score(tuned[0], [replace(example, label=2, columns={}) for example in labeled(2)], **QUIET)
    with pytest.raises(InputError, match="The labels of the data are names, 'sea', but the classes are called cat"):
        hs.score(tuned[0], [replace(example, columns={"label_name": "sea"}) for example in labeled(1)], **QUIET)
    with pytest.raises(InputError, match="None of the 3 examples of the data has a label"):
        hs.score(tuned[0], plain(3), **QUIET)
    with pytest.raises(InputError, match="There are no examples in the data"):
        hs.score(tuned[0], [], **QUIET)


def test_the_likelihood_of_a_text_is_that_of_each_token_after_those_before():
    model, data = with_head("gpt2", "AutoModelForCausalLM"), plain(5)
    result = hs.score(model, data, batch_size=2, **QUIET)
    for index, example in enumerate(data):
        inputs = tokenizer()(example.text, return_tensors="pt")
        ids = inputs.input_ids
        with torch.no_grad():
            logits = model.network(**inputs).logits[0].double()
        losses = [-logits[place].log_softmax(-1)[ids[0, place + 1]] for place in range(ids.shape[1] - 1)]
        right = [logits[place].argmax() == ids[0, place + 1] for place in range(ids.shape[1] - 1)]
        assert float(result["loss"][index]) == pytest.approx(float(sum(losses)), rel=1e-5)
        assert (int(result["tokens"][index]), int(result["right"][index])) == (len(losses), sum(right))
    mean = float(result["loss"].sum() / result["tokens"].sum())
    assert float(result["perplexity"]) == pytest.approx(np.exp(mean))
    assert float(result["log_likelihood"]) == pytest.approx(-mean)
    assert float(result["accuracy"]) == float(result["right"].sum() / result["tokens"].sum())


def test_padding_of_a_causal_model_is_on_the_right():
    model, data = with_head("gpt2", "AutoModelForCausalLM"), plain(4)
    left = deepcopy(tokenizer())
    left.padding_side = "left"
    first, second = (hs.score(changed, data, pad_to=20, **QUIET) for changed in (model, replace(model, tokenizer=left)))
    np.testing.assert_array_equal(first["loss"], second["loss"])
    assert left.padding_side == "left"


def test_a_model_that_sees_later_tokens_has_no_likelihood():
    model = with_head("bert", "AutoModelForCausalLM", is_decoder=True)
    assert float(hs.score(model, plain(3), **QUIET)["perplexity"]) > 1
    model = with_head("bert", "AutoModelForCausalLM", is_decoder=False)
    with pytest.raises(InputError, match="This BertLMHeadModel sees the tokens after the one that it predicts from"):
        hs.score(model, plain(3), **QUIET)


def test_a_text_of_one_token_has_no_next_token():
    words = deepcopy(tokenizer())
    words.backend_tokenizer.post_processor = None
    with pytest.raises(InputError, match="The text of example 'one' has 1 token"):
        hs.score(replace(with_head("gpt2", "AutoModelForCausalLM"), tokenizer=words), [Example("one", "cat")], **QUIET)
