"""The maximum flow is that of networkx, of a literal search for paths, and of the smallest cut."""

from inspect import unwrap
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.progress import show_progress
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.flow import solver
from headscope.flow.graph import residual_graph
from headscope.flow.reach import find_reachable_nodes
from headscope.flow.solver import bound_flows, flow_map, flow_maps, mix_flows, prove_by_halves, solve_pairs, sum_minima
from tests.flow.graphs import KINDS, flow_by_networkx, make_graph
from tests.oracles.flow import max_flow

EXACT = 1e-9
GRAPHS = [(seed % 6 + 1, seed % 7 + 2, seed) for seed in range(45)]  # layers, tokens, seed; of every kind


def every_graph(kind):
    return [make_graph(kind, *shape) for shape in GRAPHS]


@pytest.mark.parametrize("kind", KINDS)
def test_flow_equals_networkx(kind):
    random = np.random.default_rng(0)
    for graph in every_graph(kind):
        source, sink = random.integers(graph.shape[1], size=2)
        expected = flow_by_networkx(graph, source, sink)
        assert abs(flow_map(graph)[source, sink] - expected) <= EXACT
        assert abs(flow_maps(graph)[-1][0, source, sink] - expected) <= EXACT


def test_flow_equals_networkx_on_larger_graphs_with_and_without_a_quick_proof():
    random, counts = np.random.default_rng(0), {"proved": 0, "solved": 0}
    for kind in ("random", "sharp", "sink", "causal"):
        graph = make_graph(kind, 10, 12, seed=1)
        flows, proved = flow_map(graph), prove_by_halves(graph, np.ones((12, 12), dtype=bool))[1]
        for found, name in ((proved, "proved"), (~proved, "solved")):
            for source, sink in random.permutation(np.argwhere(found))[:3]:
                assert abs(flows[source, sink] - flow_by_networkx(graph, source, sink)) <= EXACT
                counts[name] += 1
    assert min(counts.values()) >= 6


def test_flow_of_a_real_model_equals_networkx():
    trace = capture(load(), "She talked to Sara.")
    graph = np.concatenate([layer[0].numpy() for layer in residual_graph(view(trace, "raw"), residual=0.5)])
    maps, random = flow_maps(graph), np.random.default_rng(0)
    for depth in (2, 4, 6):
        source, sink = random.integers(graph.shape[1], size=2)
        expected = flow_by_networkx(graph[:depth], source, sink)
        assert abs(maps[depth - 1][0, source, sink] - expected) <= EXACT
        assert abs(flow_map(graph[:depth])[source, sink] - expected) <= EXACT


capacities = st.one_of(st.just(0.0), st.sampled_from([0.25, 0.5, 1.0]), st.floats(1e-6, 2.0))


graphs = st.tuples(st.integers(1, 5), st.integers(1, 4)).flatmap(
    lambda size: arrays(float, (size[0], size[1], size[1]), elements=capacities)
)


@settings(max_examples=100, deadline=None)
@given(graphs)
def test_flow_of_any_capacities_equals_a_literal_search(graph):
    tokens = range(graph.shape[1])
    maps = flow_maps(graph)
    for depth, flows in enumerate(maps, start=1):
        layers = graph[:depth].tolist()
        expected = [[max_flow(layers, source, sink) for sink in tokens] for source in tokens]
        np.testing.assert_allclose(flows[0], expected, atol=EXACT, rtol=0)
    np.testing.assert_allclose(flow_map(graph), maps[-1][0], atol=EXACT, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_flow_is_the_capacity_of_the_smallest_cut(kind):
    graph = make_graph(kind, 4, 3, seed=3)
    flows = flow_maps(graph)[-1][0]
    for source, sink in product(range(3), repeat=2):
        assert flows[source, sink] == pytest.approx(smallest_cut(graph, source, sink), abs=1e-12)


def smallest_cut(graph, source, sink):
    """The least capacity between two sides, over all ways to divide the nodes of the levels between."""
    layers, size, _ = graph.shape
    top, bottom = np.arange(size) == source, np.arange(size) != sink
    sides = [np.array(side) for side in product([False, True], repeat=size)]
    cuts = []
    for between in product(sides, repeat=layers - 1):
        levels = [bottom, *between, top]  # True: on the side of the source
        cuts.append(sum(graph[k][levels[k + 1]][:, ~levels[k]].sum() for k in range(layers)))
    return min(cuts)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_enclose_the_flow(kind):
    for graph in every_graph(kind):
        maps = [flow[0] for flow in flow_maps(graph)]
        into, out = graph[0].sum(0), graph[-1].sum(1)[:, None]
        assert (maps[-1] <= np.minimum(into, out) + EXACT).all()
        assert (bound_flows(graph) >= maps[-1] - EXACT).all()
        if len(graph) > 1:
            assert (mix_flows(graph[-1], maps[-2]) <= maps[-1] + EXACT).all()
            assert (sum_minima(graph[-1], maps[-2]) >= maps[-1] - EXACT).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_flow_through_one_layer_is_its_capacity(kind):
    graph = make_graph(kind, 3, 6, seed=0)
    np.testing.assert_array_equal(flow_maps(graph)[0][0], graph[0])
    np.testing.assert_array_equal(flow_map(graph[:1]), graph[0])


@pytest.mark.parametrize("kind", KINDS)
def test_loose_bounds_cost_time_only(kind):
    graph = make_graph(kind, 4, 6, seed=5)
    everywhere = np.ones((6, 6), dtype=bool)
    flows = solve_pairs(graph, np.full((6, 6), np.inf), everywhere)
    np.testing.assert_allclose(flows, flow_map(graph), atol=1e-12, rtol=0)


def test_chosen_sources_have_the_rows_of_the_whole_map():
    for layers, kind in product((1, 2, 3, 6), ("random", "causal")):
        graph = make_graph(kind, layers, 9, seed=2)
        np.testing.assert_allclose(flow_map(graph, [7, 0, 7]), flow_map(graph)[[7, 0, 7]], atol=1e-12, rtol=0)


@pytest.mark.parametrize("sources", [[9], [-1], []])
def test_sources_that_are_no_positions_are_refused(sources):
    with pytest.raises(InputError, match="sources are positions from 0 to 8, at least one, but got"):
        flow_map(make_graph("random", 3, 9, seed=2), sources)


def test_other_edges_on_top_change_the_last_layer_only():
    graph, heads = make_graph("random", 4, 6, seed=1), make_graph("sharp", 8, 6, seed=2).reshape(4, 2, 6, 6)
    for depth, flows in enumerate(flow_maps(graph, list(heads)), start=1):
        for head in range(2):
            whole = np.concatenate([graph[: depth - 1], heads[depth - 1, head][None]])
            np.testing.assert_allclose(flows[head], flow_map(whole), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.full((2, 3, 3), np.nan), "at least 0, but these have NaN"),
        (np.full((2, 3, 3), -0.5), "these have a capacity of -0.5"),
        (np.full((2, 3, 3), np.inf), "finite numbers that are at least 0, but these have a capacity of inf"),
        (np.ones((0, 3, 3)), r"of shape \[layer, token, token\], but got \[0, 3, 3\]"),
        (np.ones((2, 3, 4)), r"of shape \[layer, token, token\], but got \[2, 3, 4\]"),
    ],
)
def test_capacities_that_no_flow_has_are_refused(graph, message):
    with pytest.raises(InputError, match=message):
        flow_maps(graph)
    with pytest.raises(InputError, match=message):
        flow_map(graph)


def test_edges_of_heads_that_are_not_those_of_the_layers_are_refused():
    graph = make_graph("random", 2, 3, seed=0)  # unwrap: during tests shapes are checked, for users they are not
    for tops in ([np.ones((1, 4, 4))] * 2, [np.ones((1, 3, 3))]):
        with pytest.raises(InputError, match=r"each of 2 layers, of shape \[head, 3, 3\], but got \[\[1, "):
            unwrap(flow_maps)(graph, tops)
    with pytest.raises(ValueError, match="do not have bounds"):
        unwrap(solve_pairs)(graph, np.ones((2, 2)), np.ones((2, 2), dtype=bool))


def test_parts_on_threads_are_the_flows_of_one_part_and_long_ones_say_how_long_they_take(monkeypatch, capsys):
    graph = make_graph("heads", 5, 9, seed=4)
    whole = flow_map(graph)
    for few, parts in ((np.inf, 2), (0, 5)):
        monkeypatch.setattr(solver, "ONE_PART", 0)
        monkeypatch.setattr(solver, "FEW_PARTS", few)
        monkeypatch.setattr(solver, "PARTS", parts)
        np.testing.assert_array_equal(flow_map(graph), whole)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(solver, "LONG", 0)
    flow_map(graph)
    assert "Flow through 5 layers of 9 tokens: about 0 s." in capsys.readouterr().err.splitlines()
    with show_progress(1, quiet=True):
        flow_map(graph)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("width", [1e6, 1e12, 1e18])
def test_edges_that_are_much_wider_than_the_flow_lose_nothing(width):
    random = np.random.default_rng(0)
    for _ in range(20):
        graph = random.random((5, 6, 6)) * random.integers(0, 2, (5, 6, 6))
        graph[1:-1] *= width
        assert abs(flow_map(graph)[0, 0] - max_flow(np.minimum(graph, 10).tolist(), 0, 0)) <= EXACT
        np.testing.assert_allclose(flow_maps(graph)[-1][0], flow_map(graph), atol=EXACT, rtol=0)


def test_what_is_given_is_left_alone():
    graph = make_graph("random", 3, 4, seed=0)
    graph[1, 0, 0] = 1e-16
    graph.flags.writeable = False
    flow_map(graph)
    assert graph[1, 0, 0] == 1e-16


def test_a_node_without_edges_reaches_nothing_below():
    layers = np.array([np.ones((2, 2)), [[0.0, 0.0], [1.0, 1.0]]])
    np.testing.assert_array_equal(find_reachable_nodes(layers)[0], [[False, False], [True, True]])
