"""Which edges are removed: rows at random in each layer, and keys of all sizes of raw attention in each row."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from headscope.core.trace import Trace

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Row:
    """The sampled keys of one row of one map, and how many keys of the row each of them stands for."""

    layer: int  # its label
    head: int  # the place of the head; -1 for all heads together
    query: int
    keys: Array
    sizes: Array


@dataclass(frozen=True)
class SamplePlan:
    """How many rows and keys are sampled, of which layers."""

    rows: int
    keys: int
    min_keys: int
    seed: int
    merged: bool  # whether a row is that of all heads together
    layers: tuple[int, ...]  # labels


def cut_strata(count: int, strata: int) -> list[int]:
    """Return the sizes of strata of `count` keys in order of their weight: few large weights, many small ones.

    The ends of the strata grow geometrically, so that the largest weight is alone; every stratum has a key.

    >>> cut_strata(128, 8)
    [1, 1, 2, 4, 8, 16, 32, 64]
    >>> cut_strata(10, 8), cut_strata(3, 8)
    ([1, 1, 1, 1, 1, 1, 1, 3], [1, 1, 1])
    """
    strata = min(strata, count)
    if strata < 2:
        return [count] * strata
    ends: list[int] = []
    for index in range(strata):
        end = round(count ** (index / (strata - 1)))
        ends.append(min(max(end, ends[-1] + 1 if ends else 1), count - (strata - 1 - index)))
    return [int(size) for size in np.diff([0, *ends])]


def draw_keys(weights: Array, strata: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Return one key of each stratum of a row, and the size of its stratum.

    Weighted by these sizes, a sum over the drawn keys estimates the sum over all keys without bias
    (Horvitz–Thompson): a key of a stratum of s keys is drawn with probability 1/s.

    >>> keys, sizes = draw_keys(np.array([0.1, 0.6, 0.3]), 2, np.random.default_rng(0))
    >>> keys[0].item(), sizes.tolist()
    (1, [1, 2])
    """
    order = np.argsort(-weights, kind="stable")
    sizes = np.array(cut_strata(len(weights), strata), dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    return order[starts + random.integers(0, sizes)], sizes


def draw_rows(trace: Trace, plan: SamplePlan, only: dict[int, Any]) -> list[list[Row]]:
    """Return the sampled rows of each example, layer by layer.

    `only` names the queries, one for each example, of layers in which no other row can change anything that is read.
    What is drawn depends on the seed, on the id of the example and on the layer, not on the rest of the batch.
    """
    real = trace.queries.real.cpu().numpy()
    return [
        [
            row
            for place, label in enumerate(trace.layers)
            if label in plan.layers
            for row in _draw_layer(trace, plan, example, place, _list_queries(real, only.get(label), example))
        ]
        for example in range(len(trace.examples))
    ]


def _list_queries(real: Array, only: Any, example: int) -> Array:
    queries: Array = real[example].nonzero()[0]
    return queries if only is None else queries[queries == int(only[example])]


def _draw_layer(trace: Trace, plan: SamplePlan, example: int, place: int, queries: Array) -> Iterator[Row]:
    """Yield the rows of one layer of one example; each row at most once."""
    label, name = trace.layers[place], trace.examples[example].id
    random = np.random.default_rng((plan.seed, zlib.crc32(name.encode(errors="surrogatepass")), label))
    visible = (trace.visible[place][example] & trace.keys.real[example].to(trace.visible[place].device)).cpu().numpy()
    queries = queries[visible[queries].sum(-1) >= plan.min_keys]
    heads = _list_heads(trace, plan, label)
    rows = random.choice(len(queries) * len(heads), min(plan.rows, len(queries) * len(heads)), replace=False)
    attention = trace.attention[place][example]
    for query, head in zip(queries[rows // len(heads)].tolist(), heads[rows % len(heads)].tolist(), strict=True):
        seen = visible[query].nonzero()[0]
        weights = attention[:, query].double().mean(0) if plan.merged else attention[head, query].double()
        keys, sizes = draw_keys(weights.cpu().numpy()[seen], plan.keys, random)
        yield Row(label, head, query, seen[keys], sizes)


def _list_heads(trace: Trace, plan: SamplePlan, label: int) -> Array:
    """Return the places of the heads of a layer that were not pruned; -1 for all of them together."""
    if plan.merged:
        return np.array([-1])
    return np.array([place for place, head in enumerate(trace.heads) if (label, head) not in trace.pruned])


@dataclass(frozen=True)
class EdgeTable:
    """Edges of one layer side by side, `edge example`; -1 as the key where an example has fewer."""

    head: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    size: torch.Tensor  # how many keys of its row an edge stands for
    row: torch.Tensor  # the number of its row in the example

    @property
    def present(self) -> torch.Tensor:
        """Which places hold an edge."""
        return self.key >= 0


def tabulate_edges(samples: Sequence[Sequence[Row]]) -> dict[int, EdgeTable]:
    """Return the edges by layer."""
    tables = {}
    for label in sorted({row.layer for rows in samples for row in rows}):
        columns = [_list_edges(rows, label) for rows in samples]
        table = np.zeros((max(map(len, columns)), len(samples), 5), dtype=np.int64)
        table[..., 2] = -1
        for example, edges in enumerate(columns):
            table[: len(edges), example] = edges
        tables[label] = EdgeTable(*(torch.from_numpy(column.copy()) for column in np.moveaxis(table, -1, 0)))
    return tables


def _list_edges(rows: Sequence[Row], label: int) -> Array:
    """Return head, query, key, size and row of each edge of a layer."""
    edges = [
        (row.head, row.query, key, size, number)
        for number, row in enumerate(rows)
        if row.layer == label
        for key, size in zip(row.keys.tolist(), row.sizes.tolist(), strict=True)
    ]
    return np.array(edges, dtype=np.int64).reshape(-1, 5)
