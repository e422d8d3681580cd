"""What attention flow costs, against networkx (the published way), igraph, OR-tools and scipy.

python -m benchmarks.flow [--quick] [--out FILE]
python -m benchmarks.flow --real [MODEL …] [--tokens N …] [--quick] [--out FILE]

With --real the graphs are those of models on a text, with all heads, with the first four alone and with the first
alone; the default model, or those that are given. Else they are drawn at random, with heads like those of trained
encoders. CPU time of one thread; headscope runs between its peers, in turns, 50 ms or one map at a time. Peers are
asked for single pairs, which are what they compute: 20 random pairs, scaled to the whole map. Their graphs are
built off the clock, and for causal attention only pairs that have a path count. networkx is timed up to 32 tokens;
more would take hours. Beyond 128 tokens only the last layer of all heads is timed.
"""

import argparse
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import igraph
import networkx as nx
import numpy as np
import torch
from ortools.graph.python.max_flow import SimpleMaxFlow
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from benchmarks.timing import show
from headscope.flow.solver import flow_map, flow_maps

Array = np.ndarray[Any, np.dtype[np.float64]]
Solver = Callable[[int, int], float]

KINDS: dict[str, dict[str, Any]] = {
    "encoder-like": {},
    "sharp": {"sharpness": (4, 10)},
    "sink": {"sink": (7, 12), "heads": 4},
    "one sharp head": {"sharpness": (3, 8), "heads": 1},
    "causal": {"causal": True},
}
SHAPES = [(layers, tokens) for layers in (6, 12) for tokens in (16, 32, 64, 128)]
PAIRS = 20
REAL_TOKENS = (16, 32, 64, 128, 256, 512)
LONGEST_ALL = 128  # more tokens are timed for the last layer only
FEW_HEADS = (4, 1)
LONGEST_NETWORKX = 32
PACKAGES = ("networkx", "igraph", "ortools", "scipy", "numba", "numpy")
EDMONDS_KARP, BEST_NETWORKX = "networkx Edmonds–Karp", "networkx, best other"
OTHER_ALGORITHMS = ("preflow_push", "shortest_augmenting_path", "boykov_kolmogorov")  # dinitz fails on floats
UNIT = 2**30  # integer capacities of a unit


@dataclass
class Row:
    """Seconds for one graph: the whole map of the last layer, all layers, and peers scaled from single pairs."""

    kind: str
    layers: int
    tokens: int
    headscope: float = 0.0
    headscope_all: float | None = None
    peers: dict[str, float] = field(default_factory=dict)
    igraph_all: float | None = None
    pairs: int = PAIRS
    apart: float = 0.0  # largest difference from networkx or igraph


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", nargs="*", metavar="MODEL", help="graphs of models: hub ids or folders")
    parser.add_argument("--tokens", nargs="*", type=int, default=REAL_TOKENS, help="lengths of real texts")
    parser.add_argument("--quick", action="store_true", help="one tiny shape, to see that it runs")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    shapes = [(3, 6)] if options.quick else SHAPES
    for warm_up in (flow_map, flow_maps):
        warm_up(attention_graph(4, 5))
    rows = []
    if options.real is None:
        groups = {kind: [(shape, attention_graph(*shape, **KINDS[kind])) for shape in shapes] for kind in KINDS}
    else:
        groups = read_real_graphs(options.real or [None], options.tokens[:1] if options.quick else options.tokens)
    for kind, graphs in groups.items():
        group = [compare(kind, graph, PAIRS) for _, graph in graphs]
        print_rows(kind, group)
        rows += group
    if options.out:
        command = "python -m benchmarks.flow" + ("" if options.real is None else " --real")
        facts: dict[str, Any] = {"command": command, "device": f"one thread of an {platform.machine()} CPU"}
        facts |= {"versions": {name: version(name) for name in PACKAGES}, "pairs": rows[0].pairs}
        text = json.dumps({**facts, "rows": [asdict(row) for row in rows]}, indent=1)
        options.out.write_text(text + "\n", encoding="utf-8")


def print_rows(kind: str, rows: Sequence[Row]) -> None:
    """Print the times of headscope and how many times as long peers take."""
    short = {EDMONDS_KARP: "nx EK*", BEST_NETWORKX: "nx other*", "OR-tools": "OR-t.*"}
    peers = list(dict.fromkeys(name for row in rows for name in row.peers))
    header = ["graph", "last", *(short.get(name, f"{name}*") for name in peers), "all", "igraph*"]
    lines = []
    for row in rows:
        cells = [f"{row.peers[name] / row.headscope:,.0f}×" if name in row.peers else "" for name in peers]
        everything = ["", ""]
        if row.headscope_all is not None and row.igraph_all is not None:
            everything = [f"{row.headscope_all * 1e3:.0f} ms", f"{row.igraph_all / row.headscope_all:,.0f}×"]
        last = f"{row.headscope * 1e3:.1f} ms"
        lines.append([f"{row.layers}×{row.tokens}", last, *cells, *everything])
    show(f"Attention flow, {kind}: peers over headscope", header, lines)
    apart = max(row.apart for row in rows)
    print(f"* from {rows[0].pairs} random pairs (scaled), which differ by {apart:.0e} at most\n", flush=True)


def read_real_graphs(models: Sequence[str | None], sizes: Sequence[int]) -> dict[str, list[tuple[Any, Array]]]:
    """Return the graphs of each model on the start of a text, with all heads and with its first four, by name."""
    import headscope as hs
    from headscope.flow.graph import residual_graph

    text = " ".join(example.text for example in hs.read("gap_pronouns:validation")[:12])
    groups: dict[str, list[tuple[Any, Array]]] = {}
    for name in models:
        model = hs.load(name, dtype="float32")
        label = "all-MiniLM-L6-v2" if name is None else Path(name).name
        for tokens in sizes:
            maps = hs.view(hs.capture(model, [text], keep=("attention",), max_length=tokens), "raw")
            heads = {label: maps}
            for few in FEW_HEADS if tokens <= LONGEST_ALL else ():
                heads[f"{label}, {few} head{'s' * (few > 1)}"] = maps.sel(head=list(range(few)))
            for kind, chosen in heads.items():
                layers = residual_graph(chosen, residual=0.5)
                groups.setdefault(kind, []).append((tokens, np.stack([layer[0, 0].numpy() for layer in layers])))
    return groups


def compare(kind: str, graph: Array, pairs: int) -> Row:
    """Time headscope and its peers on one graph."""
    layers, tokens = graph.shape[:2]
    random = np.random.default_rng(0)
    possible = np.argwhere(np.tril(np.ones((tokens, tokens))) if kind == "causal" else np.ones((tokens, tokens)))
    chosen = random.choice(possible, pairs)
    scale = len(possible) / pairs
    row = Row(kind, layers, tokens, pairs=pairs)
    spent_by_us, result = _time_whole_map(graph)
    ours = [spent_by_us]
    peers = _peers(graph) if kind in KINDS else {"igraph": [by_igraph(graph)]}
    for name, solvers in peers.items():
        spent = []
        for solver in solvers:
            seconds, values = _time(lambda solver=solver: [solver(*pair) for pair in chosen.tolist()])
            spent.append(seconds)
            if name not in ("OR-tools", "scipy"):  # those compute with integers
                row.apart = max(row.apart, float(np.abs(result[tuple(chosen.T)] - values).max()))
            if tokens <= LONGEST_ALL:
                ours.append(_time_whole_map(graph)[0])
        row.peers[name] = scale * min(spent)
    row.headscope = median(ours)
    if tokens > LONGEST_ALL:
        return row
    row.headscope_all = min(
        _time(flow_maps, graph)[0] for _ in range(1 if kind not in KINDS else 2 if tokens > 64 else 3)
    )
    row.igraph_all = _time_igraph_at_every_depth(graph, chosen, scale)
    return row


def _time_igraph_at_every_depth(graph: Array, pairs: Array, scale: float) -> float:
    """Return the scaled time for the maps of all layers, from as many pairs at every depth."""
    total = 0.0
    for depth in range(1, len(graph) + 1):
        solver = by_igraph(graph[:depth])
        total += scale * _time(lambda solver=solver: [solver(*pair) for pair in pairs.tolist()])[0]
    return total


def _time_whole_map(graph: Array) -> tuple[float, Array]:
    """Return the mean time of as many calls as take 50 ms, and the map: peers solve pair after pair, too."""
    calls, start = 0, process_time()
    while calls == 0 or process_time() - start < 0.05:
        result = flow_map(graph)
        calls += 1
    return (process_time() - start) / calls, result


def _time(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = process_time()
    result = function(*arguments)
    return process_time() - start, result


def _peers(graph: Array) -> dict[str, list[Solver]]:
    peers = {"igraph": [by_igraph(graph)], "OR-tools": [by_ortools(graph)], "scipy": [by_scipy(graph)]}
    if graph.shape[1] > LONGEST_NETWORKX:
        return peers
    others = [by_networkx(graph, name) for name in OTHER_ALGORITHMS]
    return {EDMONDS_KARP: [by_networkx(graph, "edmonds_karp")], BEST_NETWORKX: others, **peers}


def by_networkx(graph: Array, algorithm: str) -> Solver:
    """One pair at a time, as the code of Abnar & Zuidema (2020) does it (Edmonds–Karp)."""
    edges, capacities, node = _edges(graph)
    network = nx.DiGraph()
    network.add_nodes_from(range(node(len(graph), graph.shape[1])))
    network.add_weighted_edges_from(
        ((*edge, capacity) for edge, capacity in zip(edges.tolist(), capacities.tolist(), strict=True)), "capacity"
    )
    function = getattr(nx.algorithms.flow, algorithm)
    top = len(graph)
    return lambda s, t: nx.maximum_flow_value(network, node(top, s), node(0, t), flow_func=function)


def by_igraph(graph: Array) -> Solver:
    """Push–relabel in C."""
    edges, capacities, node = _edges(graph)
    network = igraph.Graph(n=node(len(graph), graph.shape[1]), edges=edges.tolist(), directed=True)
    weights, top = capacities.tolist(), len(graph)
    return lambda s, t: network.maxflow_value(node(top, s), node(0, t), weights)


def by_ortools(graph: Array) -> Solver:
    """Push–relabel in C++, with integer capacities."""
    edges, capacities, node = _edges(graph)
    network = SimpleMaxFlow()
    network.add_arcs_with_capacity(*edges.T.copy(), np.round(UNIT * capacities).astype(np.int64))
    top = len(graph)

    def solve(source: int, sink: int) -> float:
        network.solve(node(top, source), node(0, sink))
        return float(network.optimal_flow()) / UNIT

    return solve


def by_scipy(graph: Array) -> Solver:
    """Dinic's algorithm in Cython, with 32-bit integer capacities."""
    edges, capacities, node = _edges(graph)
    size, top = node(len(graph), graph.shape[1]), len(graph)
    network = csr_array((np.round(UNIT * capacities).astype(np.int32), edges.T), shape=(size, size))
    return lambda s, t: float(maximum_flow(network, node(top, s), node(0, t)).flow_value) / UNIT


def _edges(graph: Array) -> tuple[Any, Array, Callable[[int, int], int]]:
    """Return all edges of positive capacity as pairs of nodes, their capacities, and the number of a node."""
    size = graph.shape[1]
    layer, query, key = graph.nonzero()
    edges = np.stack([(layer + 1) * size + query, layer * size + key], axis=1)
    return edges, graph[layer, query, key], partial(_number, size)


def _number(size: int, level: int, token: int) -> int:
    return level * size + token


def attention_graph(
    layers: int,
    tokens: int,
    *,
    heads: int = 12,
    sharpness: tuple[float, float] = (0.5, 4),
    sink: tuple[float, float] = (2, 7),
    causal: bool = False,
) -> Array:
    """Return capacities like those of a trained encoder: heads that look at the first and last token, and beside them.

    Scores are random products of 8 dimensions, times a `sharpness` from this range; six heads of ten add an amount from
    the range `sink` to the score of the first token.
    """
    random = np.random.default_rng(1)
    graph, places = np.empty((layers, tokens, tokens)), np.arange(tokens)
    for layer in graph:
        maps = []
        for _ in range(heads):
            queries, keys = random.standard_normal((2, tokens, 8))
            scores = queries @ keys.T / 8**0.5 * random.uniform(*sharpness)
            if random.random() < 0.6:
                scores[:, 0] += random.uniform(*sink)
                scores[:, -1] += random.uniform(1, 5)
            if random.random() < 0.25:
                scores[places, np.clip(places + random.integers(-2, 3), 0, tokens - 1)] += 6
            if causal:
                scores[np.triu_indices(tokens, 1)] = -np.inf
            weights = np.exp(scores - scores.max(1, keepdims=True))
            maps.append(weights / weights.sum(1, keepdims=True))
        layer[:] = 0.5 * np.mean(maps, axis=0) + 0.5 * np.eye(tokens)
    return graph


if __name__ == "__main__":
    main()
