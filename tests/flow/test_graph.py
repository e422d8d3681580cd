"""The graph of layers and residual connections, against loops that write its definition out."""

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.maps import make_maps
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.flow.graph import residual_graph
from tests.models import batch, text, tiny

WAYS = ("absolute", "clip", "signed")


def literal_map(heads, real, residual, signed):
    """The edges of one layer of one example; signs are removed in each head, before the mean."""
    unsigned = {"absolute": abs, "clip": lambda weight: max(weight, 0.0), "signed": lambda weight: weight}[signed]
    rows = [[0.0] * len(real) for _ in real]
    for query in range(len(real)):
        if real[query]:
            mean = [sum(unsigned(head[query][key]) for head in heads) / len(heads) for key in range(len(real))]
            total = 1.0 if signed == "signed" else sum(mean)
            rows[query] = [(1 - residual) * weight / total if total else 0.0 for weight in mean]
            rows[query][query] += residual if total else 1.0
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("signed", WAYS)
@pytest.mark.parametrize("residual", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("lens", ["raw", "effective", "norm"])
def test_the_graph_equals_a_literal_loop(lens, residual, signed):
    maps = view(capture(tiny("bert"), batch("bert"), keep=("values", "output")), lens)
    merged = residual_graph(maps, residual=residual, signed=signed)
    heads = residual_graph(maps, residual=residual, signed=signed, per_head=True)
    for index, label in enumerate(maps.layers):
        weights = maps.layer(label).double().tolist()
        for row, real in enumerate(maps.queries.real.tolist()):
            expected = literal_map(weights[row], real, residual, signed)
            torch.testing.assert_close(merged[index][row, 0], expected, atol=1e-7, rtol=1e-6)  # means in float32
            expected = literal_map(weights[row][2:3], real, residual, signed)
            torch.testing.assert_close(heads[index][row, 2], expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kind", ["bert", "llama", "modernbert", "gpt_oss"])
def test_rows_of_tokens_sum_to_one_and_rows_of_padding_are_zero(kind):
    maps = view(capture(tiny(kind), batch(kind)), "raw")
    for graph in residual_graph(maps, residual=0.4) + residual_graph(maps, residual=0.4, per_head=True):
        assert graph.dtype == torch.float64
        torch.testing.assert_close(graph.sum(-1), maps.queries.real[:, None].double().expand(graph.shape[:3]))


def test_edges_lead_only_to_visible_keys_even_if_a_lens_has_weight_on_padding():
    trace = capture(tiny("bert"), batch("bert"), keep=("values", "pads"), pad_to=30)
    maps = view(trace, "effective:keys=padded")
    padding = ~maps.keys.real[:, None, None].expand(maps.layer(0).shape)
    assert maps.layer(0)[padding].any()
    (graph, *_) = residual_graph(maps, residual=0.5)
    assert not graph[padding[:, :1]].any()
    torch.testing.assert_close(graph.sum(-1)[:, 0], maps.queries.real.double())


def test_summed_heads_weigh_as_many_times_as_they_are():
    heads = torch.rand(1, 3, 4, 4).softmax(-1)
    maps = view(Trace.of([heads], list("abcd")), "raw")
    (graph,) = residual_graph(maps, residual=0.5, summed=True)
    torch.testing.assert_close(graph[0, 0], (heads[0].double().sum(0) + torch.eye(4)) / 4, atol=1e-7, rtol=1e-6)


def test_a_row_without_weight_passes_everything_on_through_the_residual():
    heads = torch.tensor([[[[-0.5, -0.5], [0.25, -0.75]]]])
    maps = make_maps(Trace.of([heads.softmax(-1)], ["a", "b"]), [heads], "own", signed=True)
    (graph,) = residual_graph(maps, residual=0.25, signed="clip")
    assert graph[0, 0].tolist() == [[1, 0], [0.75, 0.25]]


def test_nan_stays_nan():
    heads = torch.full((1, 1, 2, 2), 0.5)
    trace = Trace.of([heads], ["a", "b"])
    heads = heads.masked_fill(torch.tensor([[False], [True]]), torch.nan)
    maps = make_maps(trace, [heads], "own")
    (graph,) = residual_graph(maps, residual=0.5)
    assert graph.isnan().any(-1).tolist() == [[[False, True]]]


def test_the_maps_are_left_as_they_were():
    trace = capture(tiny("bert"), batch("bert"))
    before = [layer.clone() for layer in trace.attention]
    residual_graph(view(trace, "raw"), residual=0.5, per_head=True, dtype=torch.float32)
    assert all(torch.equal(old, new) for old, new in zip(before, trace.attention, strict=True))


def test_cross_attention_has_no_graph():
    maps = view(capture(tiny("t5"), batch("t5"), site="cross"), "raw")
    with pytest.raises(InputError, match=r"same tokens, but at the site 'cross' they are not\. Capture the self-att"):
        residual_graph(maps, residual=0.5)


def test_the_layers_of_a_graph_follow_one_another():
    maps = view(capture(tiny("modernbert"), text(3), layers=[0, 2]), "raw")
    with pytest.raises(InputError, match=r"layers 0 and 2 only\. Capture all layers"):
        residual_graph(maps, residual=0.5)


def test_a_residual_is_a_share():
    with pytest.raises(InputError, match=r"residual must be a share from 0 to 1, but got 1\.5\."):
        residual_graph(view(capture(tiny("bert"), text(2)), "raw"), residual=1.5)
