"""The layered figure: which edges it draws, how much they carry, and what it refuses."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.text import Text
from scipy.optimize import linprog

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.plotting.draw import draw
from headscope.plotting.paths import follow_capacities, follow_products, keep_largest
from headscope.results.store import open_result, save
from tests.figures.data import add_graph, dataset
from tests.models import text, tiny

GRAPH = np.array(
    [[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.0, 0.75]], [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]
)


def random_graph(layers=3, tokens=4, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(tokens), (layers, tokens))


def lines(figure):
    """The edges that are drawn: layer, key and query."""
    parts = [part for part in figure.axes[0].collections if isinstance(part, LineCollection)]
    ends = [end.round().astype(int) for part in parts for end in part.get_segments()]
    return {(int(end[0][0]), int(end[0][1]), int(end[1][1])) for end in ends}


def note(figure):
    return " ".join(" ".join(text.get_text() for text in figure.axes[0].texts).split())


def all_paths(graph, query, key):
    """Every path, one token a level from the input up, with its edges."""
    layers, tokens = graph.shape[:2]
    for path in np.ndindex(*[tokens] * (layers + 1)):
        if query in (None, path[-1]) and key in (None, path[0]):
            yield path, [graph[layer, path[layer + 1], path[layer]] for layer in range(layers)]


@pytest.mark.parametrize(("query", "key"), [(1, None), (None, 2), (1, 2)])
def test_an_edge_carries_the_weight_of_all_its_paths(query, key):
    graph = random_graph()
    expected = np.zeros_like(graph)
    for path, weights in all_paths(graph, query, key):
        for layer in range(len(graph)):
            expected[layer, path[layer + 1], path[layer]] += np.prod(weights)
    assert np.allclose(follow_products(graph, query, key), expected, atol=1e-12)


@pytest.mark.parametrize(("query", "key"), [(1, None), (None, 2), (1, 2)])
def test_no_flow_through_an_edge_is_larger_than_its_bound(query, key):
    graph = random_graph()
    bound = follow_capacities(graph, query, key)
    assert (bound <= graph).all()
    for edge in np.ndindex(*graph.shape):
        assert bound[edge] >= largest_flow_through(graph, edge, query, key) - 1e-9


def largest_flow_through(graph, edge, query, key):
    """The most that any flow between these tokens sends through an edge, by linear programming."""
    layers, tokens = graph.shape[:2]
    number = np.arange(graph.size).reshape(graph.shape)
    conserved = np.zeros(((layers - 1) * tokens, graph.size))
    for level, token in np.ndindex(layers - 1, tokens):
        conserved[level * tokens + token, number[level + 1, :, token]] = 1
        conserved[level * tokens + token, number[level, token]] -= 1
    room = graph.copy()
    room[-1, [token for token in range(tokens) if query not in (None, token)]] = 0
    room[0, :, [token for token in range(tokens) if key not in (None, token)]] = 0
    aim = np.zeros(graph.size)
    aim[number[edge]] = -1
    bounds = [(0, most) for most in room.ravel()]
    return -linprog(aim, A_eq=conserved, b_eq=np.zeros(len(conserved)), bounds=bounds).fun


def test_the_bound_by_hand():
    bound = follow_capacities(GRAPH, 0, None)
    assert bound[1].tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert bound[0].tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.25, 0.0, 0.5]]


def test_the_largest_edges_are_kept_where_they_are_connected():
    passing = follow_products(GRAPH, 0, None)
    assert [int((layer > 0).sum()) for layer in keep_largest(passing, 1.0, 0, None)] == [4, 2]
    upper = keep_largest(passing, 0.5, 0, None)
    assert [int((layer > 0).sum()) for layer in upper] == [2, 1]
    assert upper[0].nonzero()[0].tolist() == [0, 0]  # edges of token 2 are cut above


def test_only_what_reaches_the_query_is_drawn():
    data = add_graph(dataset("a b c", layers=2, heads=1))
    data["edges"].values[:] = GRAPH
    assert lines(draw(data, "layered", query=0, mass=1.0)) == {
        (1, 0, 0),
        (1, 2, 0),
        (0, 0, 0),
        (0, 1, 0),
        (0, 0, 2),
        (0, 2, 2),
    }
    assert lines(draw(data, "layered", query=1, mass=1.0)) == {(1, 1, 1), (0, 1, 1)}
    assert lines(draw(data, "layered", key=2, mass=1.0)) == {(0, 2, 2), (1, 2, 0), (1, 2, 2)}
    assert lines(draw(data, "layered", query=0, key=2, mass=1.0)) == {(0, 2, 2), (1, 2, 0)}


def test_the_caption_says_how_much_is_drawn_and_what_lines_and_bars_are():
    words = note(draw(add_graph(dataset(heads=1)), "layered", mass=1.0))
    assert "Lines: weight of all paths through an edge" in words
    assert "Drawn: the largest, 100 % of each layer." in words
    words = note(draw(add_graph(dataset(heads=1), "capacities"), "layered", mass=0.3))
    assert "Lines: the most that can flow through an edge" in words
    assert "100 %" not in words


def test_the_title_names_the_ends():
    data = add_graph(dataset("the cat sat", layers=3, heads=1))
    titles = [
        draw(data, "layered", size=6.9, **ends).axes[0].get_title() for ends in ({}, {"key": 1}, {"query": 2, "key": 1})
    ]
    assert titles == [
        "rollout · what reaches “the” above L2",
        "rollout · what “cat” reaches, up to L2",
        "rollout · what reaches “sat” above L2 from “cat”",
    ]
    assert "above L1" in draw(data, "layered", layer=1).axes[0].get_title()


def test_a_causal_graph_ends_at_the_last_token():
    assert "“sat”" in draw(add_graph(dataset("the cat sat", heads=1, causal=True)), "layered").axes[0].get_title()


def test_the_bars_are_the_scores_of_the_lens():
    data = add_graph(dataset("a b c", layers=2, heads=1))
    scores = data["weights"].values[0, 1, 0]
    for ends, expected in (({"query": 2}, scores[2]), ({"key": 1}, scores[:, 1])):
        bars = [bar.get_width() for bar in draw(data, "layered", **ends).axes[0].patches]
        assert np.allclose(np.array(bars) / max(bars), expected / expected.max())


def test_rollout_of_a_model_is_drawn_also_from_a_file(tmp_path):
    maps = view(capture(tiny("bert"), text(6)), "rollout")
    path = save(maps, tmp_path / "maps.nc")
    assert lines(draw(open_result(path), "layered")) == lines(draw(maps, "layered"))
    both = [view(capture(tiny("bert"), text(6)), "raw").mean("head"), maps]
    assert lines(draw(both, "layered")) == lines(draw(both, "layered", lens="rollout")) == lines(draw(maps, "layered"))
    with pytest.raises(InputError, match="the maps of 'raw' have none"):
        draw(both, "layered", lens="raw")


def test_negative_edges_are_dashed():
    data = add_graph(dataset("a b c", layers=2, heads=1))
    data["edges"].values[:] = GRAPH * np.where(np.arange(3) == 2, -1, 1)
    figure = draw(data, "layered", mass=1.0)
    styles = [part.get_linestyles()[0] for part in figure.axes[0].collections if isinstance(part, LineCollection)]
    assert sum(dashes is not None for _, dashes in styles) == 1
    assert "dashed ones are below zero" in note(figure)


def test_maps_without_a_graph_are_refused():
    trace = Trace.of([np.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
    with pytest.raises(InputError, match="the maps of 'raw' have none. View the trace through 'rollout' or 'flow'"):
        draw(view(trace, "raw"), "layered")
    heads = add_graph(dataset(heads=1)).isel(head=[0, 0])
    with pytest.raises(InputError, match=r"the lens 'rollout' has 2 heads\. View the trace with heads=mean"):
        draw(heads, "layered")


@pytest.mark.parametrize("lens", ["rollout:heads=each", "rollout:heads=printed", "flow:heads=each"])
def test_single_heads_have_no_graph(lens):
    maps = view(capture(tiny("bert"), text(4)), lens)
    for part in (maps, maps.sel(head=1), maps.mean("head")):
        with pytest.raises(InputError, match="have none. View the trace through 'rollout' or 'flow' with heads=mean"):
            draw(part, "layered")


def test_every_layer_is_needed():
    with pytest.raises(
        InputError, match=r"needs every layer from 0 on, but the data has layers 0, 2\. Draw the maps of all"
    ):
        draw(add_graph(dataset(layers=3, heads=1)).isel(layer=[0, 2]), "layered")


@pytest.mark.parametrize(("lens", "layer"), [("rollout", 1), ("flow", 1), ("flow:depth=last", None)])
def test_the_layers_down_to_the_input_are_needed(lens, layer):
    maps = view(capture(tiny("bert"), text(4)), lens).sel(layer=layer)
    with pytest.raises(
        InputError, match=r"needs every layer from 0 on, but the data has layers? 1\. Draw the maps of all"
    ):
        draw(maps, "layered")


def test_the_lowest_column_is_the_input_or_what_is_below_the_start():
    trace = capture(tiny("modernbert"), text(4))
    for lens, label in (("rollout", "input"), ("rollout:start=1", "below L1")):
        figure = draw(view(trace, lens), "layered")
        assert figure.axes[0].xaxis.get_major_formatter()(0, 0) == label
    with pytest.raises(InputError, match="needs every layer from 1 on"):
        draw(view(trace, "rollout:start=1").sel(layer=2), "layered")


def test_impossible_ends_and_shares_are_refused():
    data = add_graph(dataset(heads=1))
    with pytest.raises(InputError, match=r"There is no query 3: this text has 3 tokens, 0 to 2\."):
        draw(data, "layered", query=3)
    with pytest.raises(InputError, match=r"There is no key -1: this text has 3 tokens, 0 to 2\."):
        draw(data, "layered", key=-1)
    with pytest.raises(InputError, match=r"mass=0\.0 must be above 0 and at most 1"):
        draw(data, "layered", mass=0.0)


def test_the_caption_says_once_how_far_flow_is_saturated():
    trace = Trace.of([np.full((1, 2, 5, 5), 0.2, np.float32)] * 3, list("abcde"))
    words = [text.get_text() for text in draw(view(trace, "flow"), "layered").findobj(Text)]
    assert sum("as large as the edges at their ends allow" in " ".join(text.split()) for text in words) == 1
    assert "bound" not in note(draw(view(trace, "rollout"), "layered"))
