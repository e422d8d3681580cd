"""What the flow lens gives, carries and refuses."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.flow.graph import residual_graph
from headscope.flow.saturation import share_at_bound, share_same_for_sources
from headscope.flow.solver import flow_maps
from headscope.plotting.draw import draw
from tests.models import batch, text, tiny

TOKENS = ["a", "b", "c", "d", "e"]


def random_trace(layers=4, heads=2, visible="all", *, sharpness=2.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = sharpness * torch.randn(layers, 1, heads, 5, 5, generator=generator, dtype=torch.float64)
    if visible == "causal":
        scores = scores.masked_fill(~torch.ones(5, 5).tril().bool(), -torch.inf)
    return Trace.of(list(scores.softmax(-1)), TOKENS, visible=visible)


def test_the_flow_of_the_first_layer_is_attention_with_its_residual():
    trace = random_trace()
    expected = residual_graph(view(trace, "raw"), residual=0.3)[0]
    torch.testing.assert_close(view(trace, "flow:residual=0.3").layer(0), expected, atol=1e-12, rtol=0)


def test_the_last_layer_alone_is_that_of_all_layers():
    for visible in ("all", "causal"):
        trace = random_trace(layers=6, visible=visible)
        last, every = view(trace, "flow:depth=last"), view(trace, "flow")
        assert last.layers == (5,)
        torch.testing.assert_close(last.layer(5), every.layer(5), atol=1e-12, rtol=0)
        for name, table in last.diagnostics.items():
            torch.testing.assert_close(table, every.diagnostics[name][:, -1:])


def test_each_head_has_its_own_edges_on_top_and_merged_ones_below():
    trace = random_trace()
    maps, merged = view(trace, "flow:heads=each"), residual_graph(view(trace, "raw"), residual=0.5)
    assert maps.heads == trace.heads
    for head in trace.heads:
        graph = torch.cat([*(layer[0] for layer in merged[:2]), trace.attention[2][0, head][None]])
        expected = flow_maps(graph.numpy())[-1][0]
        torch.testing.assert_close(maps.layer(2)[0, head], torch.from_numpy(expected), atol=1e-12, rtol=0)


def test_normalized_rows_sum_to_one_and_leave_the_diagnostics():
    trace = random_trace()
    plain, divided = view(trace, "flow"), view(trace, "flow:normalize=true")
    assert not torch.allclose(plain.weights.sum(-1), torch.ones(1, dtype=torch.float64))
    torch.testing.assert_close(divided.weights, plain.weights / plain.weights.sum(-1, keepdim=True))
    torch.testing.assert_close(divided.diagnostics["at_bound"], plain.diagnostics["at_bound"])


def test_the_receptive_field_of_uniform_causal_attention_gives_equal_weights():
    uniform = torch.ones(5, 5, dtype=torch.float64).tril()
    trace = Trace.of([(uniform / uniform.sum(-1, keepdim=True))[None, None]] * 3, TOKENS, visible="causal")
    weights = view(trace, "flow:receptive_field=true").weights[0, :, 0]
    torch.testing.assert_close(weights, (uniform / uniform.sum(-1, keepdim=True)).expand(3, 5, 5))


def test_deep_flow_of_even_attention_saturates():
    maps = view(random_trace(layers=12, sharpness=0.3), "flow")
    bound, same = (maps.diagnostics[name][0, :, 0] for name in ("at_bound", "same_for_sources"))
    assert bound[0] == same[0] == 0
    assert bound[-1] == same[-1] == 1
    np.testing.assert_allclose(maps.layer(11)[0, 0], maps.layer(11)[0, 0, :1].expand(5, 5), atol=1e-9)


def test_saturation_counts_visible_pairs_and_tokens_with_several_sources():
    flows = np.array([[0.5, 0.0], [0.4, 0.6]])
    visible = np.array([[True, False], [True, True]])
    edges = np.array([[0.5, 0.0], [0.4, 0.6]])
    assert share_at_bound(flows, edges, edges, visible) == pytest.approx(2 / 3)  # min(1 or 0.5, 0.9 or 0.6)
    assert share_same_for_sources(flows, visible) == 0  # the second token has one source
    assert np.isnan(share_same_for_sources(flows[:1, :1], visible[:1, :1]))


def test_a_picture_says_how_far_its_flow_saturates():
    maps = view(random_trace(), "flow")
    share = maps.diagnostics["at_bound"][0, 2, 0].item()
    caption = draw(maps, "matrix", layer=2).get_supxlabel().replace("\n", " ")
    assert caption.startswith(f"{share:.0%} of flows as large as the edges at their ends allow, ")
    assert "L0: 0% of flows" in draw(maps, "head_grid").get_supxlabel().replace("\n", " ")
    assert not draw(view(random_trace(), "raw"), "matrix").get_supxlabel()
    beside = [view(random_trace(), "raw").mean("head"), maps]
    assert "same flow from every source" in draw(beside, "compare", layer=2).get_supxlabel().replace("\n", " ")


def test_maps_carry_their_capacities():
    graph = view(random_trace(), "flow").graph
    assert graph.kind == "capacities"
    torch.testing.assert_close(graph.layers[1].sum(-1), torch.ones(1, 1, 5, dtype=torch.float64))


@pytest.mark.parametrize(
    ("lens", "site", "message"),
    [
        ("flow:heads=each,inner=(norm:merge=true)", "encoder", "heads='each' asks for the flow of each head"),
        ("flow", "cross", "where queries and keys are the same tokens"),
        ("flow:residual=2", "encoder", "residual must be a share from 0 to 1"),
    ],
)
def test_what_has_no_flow_is_refused(lens, site, message):
    trace = capture(tiny("t5"), batch("t5"), site=site, keep=("values", "output"))
    with pytest.raises(InputError, match=message):
        view(trace, lens)


def test_flow_from_any_layer_but_the_lowest_is_refused():
    trace = capture(tiny("modernbert"), text(3), layers=[1, 2])
    for lens in ("flow", "flow:depth=last"):
        with pytest.raises(InputError, match=r"flow ends at the input .* lowest of the 2 layers of this trace is 1\."):
            view(trace, lens)
    assert view(capture(tiny("modernbert"), text(3), layers=[0, 1]), "flow").layers == (0, 1)


def test_measuring_says_how_the_last_layer_is_measured():
    options = {"statistics": ["entropy"], "progress": False}
    with pytest.raises(
        InputError, match=r"layers 1 only, but .* with depth=all, and select the result with \.sel\(layer"
    ):
        hs.measure(tiny("bert"), batch("bert"), lens="flow:depth=last", **options)
    with pytest.raises(InputError, match=r"lowest of the 1 layer of this trace is 1\. Capture or measure all layers"):
        hs.measure(tiny("bert"), batch("bert"), lens="flow:depth=last", layers=[1], **options)
