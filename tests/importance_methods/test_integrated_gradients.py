"""Integrated gradients, against a sum written out and against the whole difference they explain."""

import importlib

import numpy as np
import pytest
import torch

from headscope.core.errors import InputError, MissingExtra
from headscope.core.example import Example
from headscope.engine.importances import importances
from headscope.engine.model import find_word_embeddings
from tests.heads import headed
from tests.models import VOCAB, text
from tests.oracles.importances import one_text

TEXTS = [Example("a", text(6, 1), label=1), Example("b", text(11, 2), label=0)]


def literal(model, example, target, steps, token=None):
    """Sum the gradients at the nodes of Gauss and Legendre between the baseline and the text, one after the other."""
    inputs, score = one_text(model, example, target)
    layer = find_word_embeddings(model.network)[1]
    ids = inputs.tensors["input_ids"]
    vectors = layer(ids).detach()
    moved = torch.ones_like(ids, dtype=torch.bool) if token is None else ~inputs.source.special
    start = torch.where(moved[..., None], torch.zeros(()) if token is None else layer.weight[token].detach(), vectors)
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    total = torch.zeros_like(vectors)
    for node, weight in zip((1 + nodes) / 2, weights / 2, strict=True):
        here = (start + node * (vectors - start)).requires_grad_()

        def replace(_, args, output, here=here):
            return here if torch.equal(args[0], ids) else output

        with layer.register_forward_hook(replace):
            (gradient,) = torch.autograd.grad(score(model.network(**inputs.tensors)).sum(), here)
        total += weight * gradient
    parts = (total * (vectors - start)).sum(-1)[0]
    return torch.where(moved[0], parts, torch.nan).numpy()


@pytest.mark.parametrize(
    ("kind", "head", "target", "baseline"),
    [
        ("bert", "classification", "label", "zero"),
        ("gpt2", "classification", "predicted", "unk"),
        ("bert", "classification", "class=1:score=logit", "mask"),
        ("gpt2", "causal", "next:word=mat", "pad"),
    ],
)
def test_integrated_gradients_equal_a_sum_written_out(kind, head, target, baseline):
    model = headed(kind, head, double=True)
    result = importances(model, TEXTS, f"integrated_gradients:steps=7,baseline={baseline}", target=target)
    token = None if baseline == "zero" else VOCAB.index(f"[{baseline.upper()}]")
    for row, example in enumerate(TEXTS):
        expected = literal(model, example, target, 7, token)
        np.testing.assert_allclose(result.scores[row], expected, atol=1e-7 * np.nanmax(np.abs(expected)))


def test_the_scores_sum_to_the_difference_from_the_baseline_up_to_the_gap():
    model = headed("bert", "classification", double=True)
    gaps = []
    for steps in (20, 400):
        result = importances(model, TEXTS, f"integrated_gradients:steps={steps},baseline=mask", target="label")
        for row, example in enumerate(TEXTS):
            inputs, score = one_text(model, example, "label")
            masked = torch.where(inputs.source.special, inputs.tensors["input_ids"], VOCAB.index("[MASK]"))
            with torch.no_grad():
                before = float(score(model.network(**{**inputs.tensors, "input_ids": masked})))
            total = np.nansum(result.scores[row])
            assert total - (result.score[row] - before) == pytest.approx(result.diagnostics["gap"][row], abs=1e-9)
        gaps.append(np.abs(result.diagnostics["gap"]).max())
    assert gaps[1] < gaps[0]
    assert gaps[1] < 1e-3


def test_the_gap_is_in_the_dataset():
    result = importances(headed("bert", "classification"), TEXTS, "integrated_gradients:steps=3")
    assert result.to_dataset()["gap"].dims == ("method", "example")


def test_without_captum_a_sentence_says_what_to_install(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr("headscope.core.errors.import_module", refuse)
    assert importlib.import_module("captum")  # it is there; the import of headscope is refused
    with pytest.raises(MissingExtra, match=r"needs the package captum.*pip install 'headscope\[captum\]'"):
        importances(headed("bert", "classification"), TEXTS, "integrated_gradients")


def test_no_steps_are_refused():
    with pytest.raises(InputError, match="steps=0 must be at least 1"):
        importances(headed("bert", "classification"), TEXTS, "integrated_gradients:steps=0")
