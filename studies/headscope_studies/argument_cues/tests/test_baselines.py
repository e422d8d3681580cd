"""Networks without attention: a bag of vectors and a BiLSTM."""

import numpy as np
import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.training.encode import pad_batch
from headscope.training.find_task import find_task
from headscope_studies.argument_cues.baselines.networks import BASELINES, build_baseline
from headscope_studies.argument_cues.baselines.train import BaselineSettings, train_baseline
from tests.models import tiny

every = pytest.mark.parametrize("name", BASELINES)
SETTINGS = BaselineSettings(epochs=30, batch_size=8, learning_rate=1e-2)


def choices(count=24):
    """Choices of which the one with `dog` is right."""
    pairs = [("the dog sat", "the cat sat"), ("a hill", "a dog hill")]
    return [Example(str(at), "", label=at % 2, columns={"choices": pairs[at % 2]}) for at in range(count)]


def classes(count=24):
    return [Example(str(at), ("dog", "cat")[at % 2], pair="the hill", label=at % 2) for at in range(count)]


@every
@pytest.mark.parametrize("data", [choices(), classes()], ids=["choice", "classification"])
def test_a_baseline_learns_a_cue_and_is_the_same_again(name, data):
    model, (task, _) = tiny("bert"), find_task("auto", data)
    first, again = (train_baseline(name, model, task, data, SETTINGS, seed=3).answer(data) for _ in range(2))
    assert (first["prediction"] == first["label"]).all()
    np.testing.assert_array_equal(first["logits"], again["logits"])


@every
def test_the_vectors_stay_those_of_the_model(name):
    data, model = choices(), tiny("bert")
    trained = train_baseline(name, model, find_task("auto", data)[0], data, SETTINGS)
    assert torch.equal(trained.network.vectors.weight, model.network.get_input_embeddings().weight)


@every
def test_padding_changes_nothing(name):
    data, model = choices(), tiny("bert")
    task = find_task("auto", data)[0]
    network = build_baseline(name, model.network, task).eval()
    batch = task.make_batch(model.tokenizer, task.encode(model.tokenizer, data, 20), (0, 0))
    wide = pad_batch(model.tokenizer, batch, 19)
    logits = [network(**{key: part for key, part in each.items() if key != "labels"}).logits for each in (batch, wide)]
    torch.testing.assert_close(*logits, rtol=1e-5, atol=1e-6)


def test_an_unknown_baseline_is_an_error():
    data = choices()
    with pytest.raises(InputError, match="No baseline is called 'tree'. Known: bag of vectors, BiLSTM."):
        train_baseline("tree", tiny("bert"), find_task("auto", data)[0], data, SETTINGS)
