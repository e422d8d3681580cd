"""Measuring gradients of a prediction."""

import numpy as np
import pytest
import torch

import headscope as hs
from tests.heads import headed
from tests.models import text

TEXTS = [hs.Example(str(index), text(4 + index, index), label=index % 2) for index in range(6)]
LENSES = ["gradient", "rollout:inner=(gradient:times_attention=true)"]


def entropy(maps):
    sizes = maps.weights.double().abs()
    return torch.special.entr(sizes / sizes.sum(-1, keepdim=True).clamp_min(1e-300)).sum(-1).mean(-1)


@pytest.mark.parametrize("lens", LENSES)
def test_the_mean_is_that_of_examples_captured_one_by_one(lens):
    model = headed("bert", "classification")
    result = hs.measure(
        model, TEXTS, lens=lens, statistics=["entropy"], target="label", progress=False, batch_size=4
    ).isel(lens=0, site=0)
    rows = [entropy(hs.view(hs.capture(model, [example], target="label"), lens))[0] for example in TEXTS]
    expected = torch.stack(rows).mean(0).numpy()
    last = slice(-1, None) if lens == "gradient" else slice(None)  # rows of tokens that the head ignores are 0 there
    if lens == "gradient":
        assert np.isfinite(result["entropy"].values[:1]).all()
        np.testing.assert_allclose(result["entropy"].values[:1], expected[:1], atol=1e-4)
    else:
        np.testing.assert_allclose(result["entropy"].values[last], expected[last], atol=1e-4)


def test_the_target_is_stamped_and_compared(tmp_path):
    model = headed("bert", "classification")
    options = {"lens": "gradient", "statistics": ["peak"], "progress": False}
    result = hs.measure(model, TEXTS, target="label", **options)
    assert '"target": "label"' in result.attrs["headscope"]
    other = hs.measure(model, TEXTS, target="class=1:score=logit", **options)
    assert '"target": "class=1:score=logit"' in other.attrs["headscope"]


def test_a_lens_of_gradients_and_a_target_need_one_another():
    model = headed("bert", "classification")
    with pytest.raises(
        hs.InputError, match="The lens 'gradient' needs the gradient of a prediction. Say which: target="
    ):
        hs.measure(model, TEXTS, lens="gradient", statistics=["peak"])
    with pytest.raises(hs.InputError, match="target='label' was given, but no lens needs a gradient"):
        hs.measure(model, TEXTS, lens="raw", statistics=["peak"], target="label")
    with pytest.raises(hs.InputError, match="it must be a text such as 'predicted', but got <built-in function len>"):
        hs.measure(model, TEXTS, lens="gradient", statistics=["peak"], target=len)
