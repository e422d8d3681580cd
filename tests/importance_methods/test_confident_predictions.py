"""Gradients of predictions near certainty, and scores that are not finite."""

import numpy as np
import pytest
import torch

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.engine.capture import capture
from headscope.engine.importances import importances
from headscope.engine.load import load
from headscope.engine.model import find_word_embeddings
from tests.heads import headed, headed_network
from tests.models import text, tokenizer
from tests.oracles.importances import input_gradient, one_text

TEXTS = [Example("a", text(4, 1), label=0), Example("b", text(3, 2), label=0)]


def confident(margin, **changes):
    """Return a classifier whose first logit is about `margin` above all others."""
    network = headed_network("bert", "classification", **changes).double()
    with torch.no_grad():
        network.classifier.bias[0] += margin
    return load(network, tokenizer=tokenizer())


@pytest.mark.parametrize("margin", [0, 30, 35, 40, 80])
def test_the_gradients_of_both_classes_have_one_norm_however_confident_the_model(margin):
    model = confident(margin)
    first, second = (importances(model, TEXTS, "input_gradient", target=f"class={index}") for index in (0, 1))
    for ours, theirs in zip(first.scores, second.scores, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)  # two probabilities sum to 1
        assert (ours > 0).all()
    traces = [capture(model, TEXTS, target=f"class={index}").gradient[0] for index in (0, 1)]
    torch.testing.assert_close(traces[0], -traces[1], rtol=1e-5, atol=0)
    assert traces[0].any()


@pytest.mark.parametrize("changes", [{"num_labels": 2}, {"num_labels": 3}])
@pytest.mark.parametrize("margin", [30, 35, 40, 80])
def test_a_confident_gradient_is_the_finite_difference_of_the_log_odds(margin, changes):
    """The derivative of p is p (1 - p) times that of its log-odds."""
    model, example = confident(margin, **changes), TEXTS[1]
    found = importances(model, [example], "input_gradient", target="class=0").scores[0]

    def log_odds(output):
        return output.logits[:, 0] - output.logits[:, 1:].logsumexp(-1)

    inputs, _ = one_text(model, example, "class=0")
    with torch.no_grad():
        odds = float(log_odds(model.network(**inputs.tensors)))
    gradient = input_gradient(model, example, log_odds, find_word_embeddings(model.network)[1], step=1e-4)
    expected = np.linalg.norm(gradient, axis=-1) / ((1 + np.exp(odds)) * (1 + np.exp(-odds)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_confident_labels_that_do_not_exclude_one_another_have_gradients():
    model = confident(60, problem_type="multi_label_classification")
    result = importances(model, TEXTS, "input_gradient", target="class=0")
    assert all((scores > 0).all() for scores in result.scores)


@pytest.mark.parametrize("method", ["blank_out", "input_gradient"])
def test_scores_that_are_not_finite_are_counted_in_a_warning(method):
    network = headed_network("bert", "classification")
    with torch.no_grad():
        network.classifier.weight[0, 0] = torch.nan
    with pytest.warns(DataWarning, match=r"2 of 2 examples \('a' and 'b'\).*7 of 7 ordinary tokens") as notes:
        importances(load(network, tokenizer=tokenizer()), TEXTS, method)
    assert len(notes) == 1


def test_special_tokens_without_a_score_are_no_warning(recwarn):
    importances(headed("bert", "classification"), TEXTS, "blank_out")
    assert not recwarn.list


@pytest.mark.parametrize("method", ["input_gradient", "integrated_gradients:steps=2"])
def test_a_target_function_without_a_gradient_is_refused(method):
    model, sentence = headed("bert", "classification"), "The target function returns numbers without a gradient"
    for function in (lambda output: output.logits[:, 0].detach(), lambda output: output.logits.argmax(-1)):
        with pytest.raises(InputError, match=sentence):
            importances(model, TEXTS, method, target=function)
        with pytest.raises(InputError, match=sentence):
            capture(model, TEXTS, target=function)
    assert importances(model, TEXTS, "blank_out", target=lambda output: output.logits[:, 0].detach()).scores
