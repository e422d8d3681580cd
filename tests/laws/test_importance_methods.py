"""Laws that hold for every method of importances and every variant of it."""

import itertools
from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch

from headscope.core.catalog import importance_methods
from headscope.core.example import Example
from headscope.core.spec import to_spec
from headscope.engine.importances import importances
from headscope.engine.load import load
from tests.heads import headed, headed_network
from tests.models import text, tokenizer

TEXTS = [Example("a", text(6, 1), label=1), Example("b", text(12, 2), label=0), Example("c", text(3, 3), label=1)]


def variants():
    """Every method with every combination of its choices, and few steps where it has steps."""
    for kind in importance_methods:
        hints = get_type_hints(kind)
        names = [field.name for field in fields(kind)]
        choices = {name: get_args(hints[name]) for name in names if get_origin(hints[name]) is Literal}
        few = {"steps": 3} if "steps" in names else {}
        for chosen in itertools.product(*choices.values()):
            yield kind(**dict(zip(choices, chosen, strict=True)), **few)


METHODS = list(variants())
every_method = pytest.mark.parametrize("method", METHODS, ids=to_spec)


def test_a_method_rebuilds_from_its_spec():
    for method in METHODS:
        assert importance_methods.make(to_spec(method)) == method


@every_method
def test_single_texts_equal_a_batch(method):
    model = headed("bert", "classification", double=True)
    together = importances(model, TEXTS, method, target="label", batch_size=3)
    for row, example in enumerate(TEXTS):
        alone = importances(model, [example], method, target="label")
        np.testing.assert_allclose(together.scores[row], alone.scores[0], rtol=1e-7, atol=1e-12)
        assert together.tokens[row] == alone.tokens[0]


@every_method
def test_only_special_tokens_may_have_no_score_and_only_signed_methods_negative_ones(method):
    result = importances(headed("gpt2", "classification"), TEXTS, method, target="label")
    assert result.method == to_spec(method)
    for scores, special in zip(result.scores, result.special, strict=True):
        assert np.isfinite(scores[~special]).all()
        assert result.signed or not (scores < 0).any()
        assert np.nanmax(np.abs(scores)) > 0


@every_method
def test_the_model_is_left_as_it_was(method):
    network = headed_network("bert", "classification").train()
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    importances(load(network, tokenizer=tokenizer()), TEXTS, method)
    assert all(module.training for module in network.modules())
    assert all(weight.grad is None for weight in network.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in network.state_dict().items())
    assert not any(module._forward_hooks for module in network.modules())


@every_method
def test_the_callers_gradient_mode_does_not_matter(method):
    model = headed("bert", "classification")
    expected = importances(model, TEXTS, method)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            np.testing.assert_array_equal(importances(model, TEXTS, method).scores[1], expected.scores[1])
