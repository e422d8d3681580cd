"""Importance of heads, against finite differences and literal loops."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.ablation.head_importance import SCORE_DRAW, compute_reductions, find_site
from headscope.core.edit import Edit
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.provenance import read_provenance
from headscope.training.find_task import find_task_of_head
from headscope.training.losses import compute_losses
from headscope.training.predict import plan_batches
from headscope.training.task import run_network
from tests.models import KINDS, text, tokenizer
from tests.training.data import choosing, labeled, paired, plain

STEPS = {"t5": 1e-3}  # whose softmax and norms are in float32, also of a float64 model
STEP = 1e-5  # of finite differences of all others, in float64
QUIET = {"progress": False}
DATA = {
    "classification": labeled(3),
    "regression": paired(3),
    "choice": choosing(3, ("a cat", "dog")),
    "mlm": plain(3),
    "causal": plain(3),
    "hooks": plain(3),
    "t5": (pairs := [Example(str(row), text(2 + row, row), text(3, row + 50)) for row in range(3)]),
    "bart": pairs,
}
HEADS = {
    "classification": ("bert", "AutoModelForSequenceClassification", {}),
    "regression": ("distilbert", "AutoModelForSequenceClassification", {"num_labels": 1}),
    "choice": ("bert", "AutoModelForMultipleChoice", {}),
    "mlm": ("bert", "AutoModelForMaskedLM", {}),
    "causal": ("gpt2", "AutoModelForCausalLM", {}),
    "hooks": ("mpnet", "AutoModelForMaskedLM", {}),  # not through the attention interface
    "t5": ("t5", "AutoModelForSeq2SeqLM", {}),
    "bart": ("bart", "AutoModelForSeq2SeqLM", {}),
}
CASES = [
    *((name, None) for name in HEADS if name not in ("t5", "bart")),
    *((name, site) for name in ("t5", "bart") for site in ("encoder", "decoder", "cross")),
]


def model_of(name):
    """A tiny model in float64 with a random head, and weights so large that its heads matter."""
    import transformers

    torch.manual_seed(2)
    kind, auto, changes = HEADS[name]
    config = transformers.AutoConfig.for_model(kind, **{**KINDS[kind], "pad_token_id": 0, **changes})
    network = getattr(transformers, auto).from_config(config).double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3 if weight.ndim > 1 else 1)
    return hs.load(network, tokenizer=tokenizer())


@dataclass(frozen=True)
class Scaled(Edit):
    """What a part of the heads writes, times a factor; `part` is an index of row, head and query, by site and layer."""

    state: dict = field(default_factory=dict)

    def __call__(self, heads):
        self.state["shape", heads.site] = heads.context.shape
        part = self.state.get((heads.site, heads.layer))
        if part is None:
            return None
        context = heads.context.clone()
        context[part] *= self.state["factor"]
        return context


@dataclass
class Literal:
    """Finite differences of the loss of a model, as slow as they are."""

    model: hs.Model
    task: Any
    site: str
    step: float
    scaled: Scaled = field(default_factory=Scaled)

    def losses(self, rows):
        batch = self.batch(rows)
        with torch.no_grad():
            output = run_network(self.task, self.model.network, batch)
            return compute_losses(self.task, output, batch)

    def loss(self, rows):
        losses, terms = self.losses(rows)
        return float(losses.sum() / terms.sum())

    def batch(self, rows):
        return self.task.make_batch(tokenizer(), rows, SCORE_DRAW)

    def slope(self, compute, layer, part):
        """The slope of what is computed with respect to a factor on a part of what the heads of a layer write."""
        self.scaled.state[self.site, layer] = part
        ends = []
        for factor in (1 + self.step, 1 - self.step):
            self.scaled.state["factor"] = factor
            ends.append(compute())
        del self.scaled.state[self.site, layer]
        return (ends[0] - ends[1]) / (2 * self.step)

    def slopes(self, rows):
        """The slopes of the mean loss with respect to gates on the heads."""
        every = slice(None)
        return np.array(
            [[self.slope(lambda: self.loss(rows), layer, (every, head)) for head in range(4)] for layer in range(2)]
        )

    def token_slopes(self, row):
        """The absolute slopes with respect to gates on single queries, summed; each has a copy of the example."""
        self.loss([row])
        rows, _, queries, _ = self.scaled.state["shape", self.site]
        parts = np.array(list(np.ndindex(4, rows, queries)))  # head, row of the example, query
        copies = [row] * len(parts)
        index = (torch.tensor(np.arange(len(parts)) * rows + parts[:, 1]), *torch.tensor(parts[:, [0, 2]]).T)

        def compute():
            losses, terms = self.losses(copies)
            return (losses / terms).double().numpy()

        slopes = np.stack([self.slope(compute, layer, index) for layer in range(2)])  # layer part
        return np.abs(slopes).reshape(2, 4, -1).sum(-1)

    def tokens(self, rows):
        """The number of queries that are no padding."""
        batch = self.batch(rows)
        return int((batch["labels"] != -100 if self.site in ("decoder", "cross") else batch["attention_mask"]).sum())


@contextmanager
def literal(name, site):
    model, data = model_of(name), DATA[name]
    task = find_task_of_head("auto", model.network, data)
    slow = Literal(model, task, find_site(model, site), STEPS.get(name, STEP))
    with hs.edited(model, slow.scaled):
        yield slow, task.encode(tokenizer(), data, 32)


def assert_close(result, expected, name):
    """Equal up to the error of central differences: of rounding, divided by the step."""
    rounding = {"rtol": 5e-3, "atol": 1e-4} if name in STEPS else {"rtol": 1e-5, "atol": 1e-9}
    np.testing.assert_allclose(result["head_importance"], expected, **rounding)


@pytest.mark.parametrize(("name", "site"), CASES)
def test_the_importance_of_an_example_is_the_slope_of_its_loss(name, site):
    with literal(name, site) as (slow, rows):
        expected = np.mean([np.abs(slow.slopes([row])) for row in rows], 0)
    result = hs.head_importance(model_of(name), DATA[name], site=site, batch_size=2, **QUIET)
    assert_close(result, expected, name)
    assert (expected > 1e-6).any()
    assert result.sizes == {"layer": 2, "head": 4}
    assert (result["head_importance_n"] == len(rows)).all()


@pytest.mark.parametrize(("name", "site"), CASES)
def test_the_importance_of_batches_is_the_slope_of_their_mean_loss_by_tokens(name, site):
    with literal(name, site) as (slow, rows):
        batches = [[rows[index] for index in indices] for indices in plan_batches(rows, 2)]
        expected = sum(np.abs(slow.slopes(batch)) for batch in batches) / sum(map(slow.tokens, batches))
    result = hs.head_importance(model_of(name), DATA[name], site=site, reduction="batch", batch_size=2, **QUIET)
    assert_close(result, expected, name)


@pytest.mark.parametrize(("name", "site"), CASES)
def test_the_importance_of_tokens_is_the_mean_of_their_absolute_slopes(name, site):
    with literal(name, site) as (slow, rows):
        expected = sum(map(slow.token_slopes, rows[:2])) / slow.tokens(rows[:2])
    result = hs.head_importance(model_of(name), DATA[name][:2], site=site, reduction="token", batch_size=2, **QUIET)
    assert_close(result, expected, name)


def test_absolute_values_of_smaller_parts_add_up_to_more():
    model, data = model_of("classification"), DATA["classification"]
    token, example, batch = (
        hs.head_importance(model, data, reduction=reduction, **QUIET)["head_importance"].values
        for reduction in ("token", "example", "batch")
    )
    tokens = sum(len(row) for row in tokenizer()([row.text for row in data])["input_ids"])
    sums = token * tokens, example * len(data), batch * tokens * len(data)  # of the mean loss of the only batch
    for more, less in pairwise(sums):
        assert (more >= less - 1e-12).all()
        assert (more > 1.01 * less).any()


def test_several_reductions_share_their_passes():
    model, data = model_of("classification"), DATA["classification"]
    names = ("token", "example", "batch")
    together = compute_reductions(model, data, names, batch_size=2, **QUIET)
    for name in names:
        alone = hs.head_importance(model, data, reduction=name, batch_size=2, **QUIET)["head_importance"]
        np.testing.assert_array_equal(together.sel(reduction=name), alone)


def test_with_one_example_a_batch_the_batch_is_the_example():
    model, data = model_of("mlm"), DATA["mlm"]
    example = hs.head_importance(model, data, **QUIET)["head_importance"]
    batch = hs.head_importance(model, data, reduction="batch", batch_size=1, **QUIET)["head_importance"]
    tokens = sum(len(row) for row in tokenizer()([row.text for row in data])["input_ids"])
    np.testing.assert_allclose(batch * tokens, example * 3, rtol=1e-9)


@pytest.mark.parametrize("reduction", ["example", "token"])
def test_the_size_of_batches_and_the_order_of_examples_change_nothing(reduction):
    model, data = model_of("classification"), DATA["classification"]
    first = hs.head_importance(model, data, reduction=reduction, **QUIET)["head_importance"]
    second = hs.head_importance(model, data[::-1], reduction=reduction, batch_size=2, **QUIET)["head_importance"]
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_layers_are_divided_by_their_norm():
    model, data = model_of("classification"), DATA["classification"]
    plainly = hs.head_importance(model, data, **QUIET)["head_importance"]
    result = hs.head_importance(model, data, normalize="layer", **QUIET)
    np.testing.assert_allclose(result["head_importance"], plainly / np.sqrt((plainly**2).sum("head")), rtol=1e-12)
    np.testing.assert_allclose((result["head_importance"] ** 2).sum("head"), 1)
    assert (result["head_importance_low"] <= result["head_importance"]).all()
    assert (result["head_importance"] <= result["head_importance_high"]).all()


def test_intervals_are_those_of_resampled_examples():
    model, data = model_of("classification"), DATA["classification"]
    rows = np.stack([hs.head_importance(model, [row], **QUIET)["head_importance"] for row in data])
    result = hs.head_importance(model, data, **QUIET)
    times = np.random.default_rng(0).multinomial(3, np.full(3, 1 / 3), size=1000)
    draws = np.einsum("de,elh->dlh", times, rows) / 3
    low, high = np.percentile(draws, (2.5, 97.5), axis=0)
    np.testing.assert_allclose(result["head_importance_low"], low, rtol=1e-6)
    np.testing.assert_allclose(result["head_importance_high"], high, rtol=1e-6)
    alone = hs.head_importance(model, data, reduction="batch", **QUIET)
    assert np.isnan(alone["head_importance_low"]).all()
    assert alone["head_importance"].attrs["interval"] == "unknown: one of the batches only"


def test_heads_without_an_output_have_no_importance():
    model, data = model_of("classification"), DATA["classification"]
    result = hs.head_importance(model, data, edit="zero_heads:heads=L0H1+L1H3", **QUIET)
    zero = result["head_importance"].values == 0
    assert [tuple(map(int, index)) for index in np.argwhere(zero)] == [(0, 1), (1, 3)]
    assert read_provenance(result)["edits"] == ["zero_heads:heads=L0H1+L1H3"]


def test_heads_that_were_pruned_have_no_importance_at_all():
    model, data = model_of("classification"), DATA["classification"]
    edit = "zero_heads:heads=L0H1+L1H3"
    zero, pruned = (
        hs.head_importance(model, data, edit=edit, **QUIET),
        hs.head_importance(hs.prune(model, ["L0H1", "L1H3"]), data, **QUIET),
    )
    missing = np.isnan(pruned["head_importance"].values)
    assert [tuple(map(int, index)) for index in np.argwhere(missing)] == [(0, 1), (1, 3)]
    assert (pruned["head_importance_n"].values[missing] == 0).all()
    np.testing.assert_allclose(
        pruned["head_importance"].values[~missing], zero["head_importance"].values[~missing], rtol=1e-6
    )


def test_the_model_is_left_as_it_was():
    model, data = model_of("classification"), DATA["classification"]
    before = model.weights_hash
    model.network.train()
    with torch.no_grad():
        first = hs.head_importance(model, data, **QUIET)
    assert model.network.training
    assert model.weights_hash == before
    assert all(weight.grad is None for weight in model.network.parameters())
    model.network.requires_grad_(False)
    with torch.inference_mode():
        second = hs.head_importance(model, data, **QUIET)
    np.testing.assert_array_equal(first["head_importance"], second["head_importance"])


def test_mistakes_are_named():
    model, data = model_of("classification"), DATA["classification"]
    with pytest.raises(InputError, match="No reduction is called 'tokens'. Did you mean 'token'"):
        hs.head_importance(model, data, reduction="tokens", **QUIET)
    with pytest.raises(InputError, match="normalize='l2' is not known. Give 'layer'"):
        hs.head_importance(model, data, normalize="l2", **QUIET)
    with pytest.raises(InputError, match="The model has no attention site 'cross'. Its sites: self."):
        hs.head_importance(model, data, site="cross", **QUIET)
    with pytest.raises(InputError, match="batch_size must be at least 1, but got 0"):
        hs.head_importance(model, data, batch_size=0, **QUIET)


def test_the_result_is_stamped_and_drawn():
    model, data = model_of("classification"), DATA["classification"]
    result = hs.head_importance(model, data, **QUIET)
    facts = read_provenance(result)
    assert facts["command"] == "hs.head_importance"
    assert {"reduction": "example", "normalize": None, "site": "self", "n": 3}.items() <= facts.items()
    assert {"weights_hash", "data", "task", "batch_size", "max_length", "draws", "seed"} <= set(facts)
    assert "head importance" in hs.draw(result, "heads").get_suptitle()
    assert hs.draw(result).axes
