"""The authors' script for SST-2, beside a literal copy of what it does, one pair of nodes after the other."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.uncertainty.correlation import spearman
from headscope_studies.attention_flow.paper import LOGGED, SST_GRADIENT
from headscope_studies.attention_flow.prediction_rows import average_heads
from headscope_studies.attention_flow.published import (
    SCRIPT,
    STEPS,
    Comparison,
    correlate_maps,
    dense_rank_correlation,
    follow_layers,
    read_inputs,
    relate,
)
from tests.heads import headed
from tests.models import text

EXAMPLES = [Example(str(at), text(length, at), label=at % 2) for at, length in enumerate((5, 9, 3))]


def script_correlation(x, y):
    """Dense ranks, and the formula for ranks without ties, as the script writes it with pandas."""
    difference = pd.Series(x).rank(method="dense") - pd.Series(y).rank(method="dense")
    n = len(x)
    return 1.0 - (6.0 * np.sum(np.square(difference))) / (n * (n**2 - 1.0))


def script_relevance(attention, kind, layer):
    """The relevance of tokens by the script: heads averaged, the residual added, the largest weight of all rows."""
    mean = attention.mean(1)
    if kind == "raw":
        return mean[layer].max(0)
    edges = mean + np.eye(mean.shape[-1])
    edges = edges / edges.sum(-1)[..., None]
    if kind == "rollout":
        joint = edges[0]
        for upper in edges[1 : layer + 1]:
            joint = upper.dot(joint)
        return joint.max(0)
    graph, size = nx.DiGraph(), mean.shape[-1]
    for level, weights in enumerate(edges, start=1):
        for query in range(size):
            for key in range(size):
                graph.add_edge((level, query), (level - 1, key), capacity=weights[query, key])
    flows = np.array(
        [[nx.maximum_flow_value(graph, (layer + 1, query), (0, key)) for key in range(size)] for query in range(size)]
    )
    return (flows / flows.sum(-1, keepdims=True)).max(0)


def script_gradient(model, example):
    """The size of the sum of the last logit's gradient over the dimensions of what the embeddings return."""
    inputs = model.tokenizer(example.text, return_tensors="pt")
    states = model.network.bert.embeddings(inputs["input_ids"]).detach().requires_grad_()
    mask = torch.zeros(1, 1, 1, 1, dtype=states.dtype)
    hidden = model.network.bert.encoder(states, attention_mask=mask).last_hidden_state
    logits = model.network.classifier(model.network.bert.pooler(hidden))
    (gradient,) = torch.autograd.grad(logits[0, -1], states)
    return gradient[0].sum(-1).abs().numpy()


@pytest.fixture(scope="module")
def model():
    return headed("bert", "classification", double=True)


def test_the_script_is_repeated_token_by_token(model):
    readings = read_inputs(model, EXAMPLES, max_length=None, batch_size=2)
    found = relate(readings, [example.id for example in EXAMPLES])["step_correlation"].sel(step=SCRIPT)
    for row, example in enumerate(EXAMPLES):
        attention = np.stack([layer[0].numpy() for layer in capture(model, [example], keep=("attention",)).attention])
        gradient = script_gradient(model, example)
        np.testing.assert_allclose(readings[row].gradients["sum, fixed logit"], gradient, rtol=1e-6, atol=1e-12)
        for lens in ("raw", "rollout", "flow"):
            for layer in range(len(attention)):
                relevance = script_relevance(attention, lens, layer)
                rounded = np.round(relevance / relevance.max(), 9)  # networkx adds flows in another order
                expected = script_correlation(rounded, gradient)
                assert float(found[row].sel(lens=lens)[layer]) == pytest.approx(expected, abs=1e-9)


def test_the_first_step_is_the_text_and_each_changes_one_thing(model):
    assert STEPS["as the text says"] == Comparison()
    fields = [vars(comparison) for comparison in STEPS.values()]
    changes = [sum(a[name] != b[name] for name in a) for a, b in pairwise(fields)]
    assert changes == [1] * (len(STEPS) - 1)


def test_maps_are_those_of_the_lenses(model):
    trace = capture(model, [EXAMPLES[0]], keep=("attention",))
    maps = follow_layers(average_heads(view(trace, "raw"))[0].numpy())
    for name, lens in (("rollout", "rollout"), ("flow", "flow:normalize=true")):
        np.testing.assert_allclose(maps[name], average_heads(view(trace, lens))[0].numpy(), atol=1e-9)


def test_special_tokens_are_left_out_until_they_count(model):
    (reading,) = read_inputs(model, EXAMPLES[:1], max_length=None)
    maps = np.random.default_rng(0).random((1, *2 * (len(reading.special),)))
    used = ~reading.special
    expected = spearman(maps[0, 0, used], reading.gradients["norm, right class"][used])
    assert correlate_maps(maps, reading, Comparison())[0] == pytest.approx(float(expected), abs=1e-12)
    assert used.sum() == len(used) - 2


def test_dense_ranks_are_spearmans_without_ties_and_not_with_them():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(20, 8)), random.normal(size=(20, 8))
    np.testing.assert_allclose(dense_rank_correlation(x, y), spearman(x, y), atol=1e-12)
    # dense ranks 1 1 1 2 and 1 2 3 4: d² is 0, 1, 4 and 4, and 1 - 6 · 9 / (4 · 15) is 0.1
    assert float(dense_rank_correlation(np.array([1.0, 1.0, 1.0, 2.0]), np.arange(4.0))) == pytest.approx(0.1)


def test_shuffled_gradients_give_no_correlation(model):
    readings = read_inputs(model, EXAMPLES[1:2], max_length=None)
    random, values = np.random.default_rng(0), []
    for _ in range(400):
        shuffled = {name: random.permutation(scores) for name, scores in readings[0].gradients.items()}
        reading = type(readings[0])(readings[0].attention, shuffled, readings[0].special, readings[0].prediction)
        values.append(correlate_maps(reading.attention, reading, STEPS[SCRIPT])[-1])
    assert abs(np.mean(values)) < 4 * np.std(values) / len(values) ** 0.5


def test_the_printed_table_is_a_log_of_the_repository():
    for lens, means in LOGGED["correlations_bert_sst_max"].items():
        assert tuple(round(mean, 2) for mean in means) == SST_GRADIENT[lens][0]
