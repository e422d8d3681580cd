"""Some examples, layers and heads of maps, and means over layers and heads."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.core.errors import InputError, unknown_name
from headscope.core.maps import LazyTensors, Maps, Selector
from headscope.core.maps.factored import Factored
from headscope.core.prose import count_noun
from headscope.core.tokens import Tokens
from headscope.core.trace import select_labels

AXES = ("layer", "head")


def select_maps(maps: Maps, example: Selector, layer: Selector, head: Selector) -> Maps:
    """Return the maps of some examples, layers and heads; None is all of them."""
    layers, heads = _select(maps.layers, layer, "layer"), _select(maps.heads, head, "head")
    rows = _select_rows(maps, example)
    which = [maps.layers.index(label) for label in layers]
    columns = None if heads == maps.heads else [maps.heads.index(label) for label in heads]
    return replace(
        maps,
        parts=[_take_part(maps.parts[index], rows, columns) for index in which],
        layers=layers,
        heads=heads,
        visible=[_take(maps.visible[index], rows) for index in which],
        queries=_take_tokens(maps.queries, rows),
        keys=_take_tokens(maps.keys, rows),
        examples=maps.examples if rows is None else tuple(maps.examples[row] for row in rows),
        graph=maps.graph and replace(maps.graph, layers=[_take(maps.graph.layers[index], rows) for index in which]),
        diagnostics=LazyTensors({name: _postpone(maps, name, rows, which, columns) for name in maps.diagnostics}),
    )


def average_maps(maps: Maps, dims: Sequence[str]) -> Maps:
    """Return the mean over heads, layers or both; a key that any of the layers sees is visible."""
    if unknown := [dim for dim in dims if dim not in AXES]:
        advice = (
            "Examples have different tokens: measure them with hs.measure."
            if unknown[0] == "example"
            else "Average maps.to_dataset()['weights'] over other axes."
        )
        raise InputError(f"Maps are averaged over 'layer', 'head' or both, but got '{unknown[0]}'. {advice}")
    averaged = dict(maps.averaged)
    if "head" in dims and not maps.merged:
        averaged["head"] = (
            f"mean of {count_noun(len(maps.heads), 'head')}{' without pruned ones' if maps.pruned else ''}"
        )
        averages = [maps.layer(label)[:, _find_left(maps, label)].mean(1, keepdim=True) for label in maps.layers]
        maps = replace(maps, parts=averages, heads=(0,), merged=True, averaged=averaged, diagnostics={})
    if "layer" in dims and "layer" not in averaged:
        averaged = {**averaged, "layer": f"mean of {count_noun(len(maps.layers), 'layer')}"}
        seen = [torch.stack(list(maps.visible)).any(0)]
        averages = [maps.weights.mean(1)]
        maps = replace(maps, parts=averages, layers=(0,), visible=seen, averaged=averaged, diagnostics={}, graph=None)
    return maps


def _find_left(maps: Maps, layer: int) -> slice | list[int]:
    """Return the indices of the heads of a layer that were not pruned; the mean of none is NaN."""
    if not maps.pruned:
        return slice(None)
    return [index for index, head in enumerate(maps.heads) if (layer, head) not in maps.pruned]


def index_maps(maps: Maps, key: Any) -> xr.DataArray:
    """Return the weights of layers and heads; single labels lose their axis, and so does a single example."""
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) > len(AXES):
        raise InputError(
            f"Maps are indexed by a layer and a head, as in maps[3, 7], but got {len(keys)} indices. "
            "Select an example with maps.sel(example=…)."
        )
    labels = {"layer": maps.layers, "head": maps.heads}
    wanted = {
        axis: _slice_labels(labels[axis], key, axis, inclusive=False) if isinstance(key, slice) else key
        for axis, key in zip(AXES, keys, strict=False)
    }
    selected = maps.sel(**wanted)
    data = selected.dataset() if len(selected.examples) == 1 else selected.to_dataset()
    single = [axis for axis, label in wanted.items() if _is_single(label)]
    return data["weights"].assign_coords(visible=data["visible"]).isel(dict.fromkeys(["lens", *single], 0))


def _select(labels: tuple[int, ...], wanted: Selector, what: str) -> tuple[int, ...]:
    """Return the wanted labels; a slice includes its end, as in xarray."""
    if isinstance(wanted, slice):
        wanted = _slice_labels(labels, wanted, what, inclusive=True)
    return select_labels(labels, wanted, what)


def _slice_labels(labels: tuple[int, ...], wanted: slice, what: str, *, inclusive: bool) -> list[int]:
    """Return the labels between two labels, in their order; negative ends count from the last one."""
    ascending = list(labels) == sorted(labels)

    def position(end: int, *, after: bool) -> int:
        if end >= 0 and ascending:
            return bisect_right(labels, end) if after else bisect_left(labels, end)
        index = max(end, -len(labels)) % len(labels) if end < 0 else labels.index(*select_labels(labels, end, what))
        return index + after

    start = 0 if wanted.start is None else position(wanted.start, after=False)
    stop = len(labels) if wanted.stop is None else position(wanted.stop, after=inclusive)
    return list(labels[start:stop][:: wanted.step])


def _is_single(wanted: Any) -> bool:
    """Return True for one label; an array or a tensor of labels also has `__index__`."""
    return np.ndim(wanted) == 0 and isinstance(wanted, SupportsIndex)


def _select_rows(maps: Maps, wanted: Selector) -> list[int] | None:
    """Return the rows of examples, selected by position or id; None is all of them."""
    if wanted is None:
        return None
    positions = range(len(maps.examples))
    if isinstance(wanted, slice):
        return list(positions[wanted])
    ids = [example.id for example in maps.examples]
    wanted_list = [wanted] if np.ndim(wanted) == 0 else list(wanted)
    for name in wanted_list:
        if isinstance(name, str) and name not in ids:
            raise unknown_name("example", name, ids)
    return list(
        select_labels(positions, [ids.index(one) if isinstance(one, str) else one for one in wanted_list], "example")
    )


def _take_part(layer: Tensor | Factored, rows: list[int] | None, heads: list[int] | None) -> Tensor | Factored:
    if isinstance(layer, Factored):
        return Factored(_take(layer.left, rows, heads), _take(layer.right, rows, heads))
    return _take(layer, rows, heads)


def _take(tensor: Tensor, rows: list[int] | None, heads: list[int] | None = None) -> Tensor:
    """Return some rows and heads; the tensor itself where all are wanted."""
    tensor = tensor if rows is None else tensor[rows]
    return tensor if heads is None else tensor[:, heads]


def _take_tokens(tokens: Tokens, rows: list[int] | None) -> Tokens:
    if rows is None:
        return tokens
    optional: Any = (None if table is None else table[rows] for table in (tokens.role, tokens.position))
    tables: Any = (tokens.real[rows], tokens.special[rows], tokens.segment[rows], tokens.word[rows], *optional)
    return Tokens([tokens.text[row] for row in rows], *tables)


def _postpone(
    maps: Maps, name: str, rows: list[int] | None, layers: list[int], heads: list[int] | None
) -> Callable[[], Tensor]:
    """Return a function that computes a diagnostic and selects from it."""

    def take() -> Tensor:
        table = _take(maps.diagnostics[name], rows)[:, layers]
        return table if heads is None else table[:, :, heads]

    return take
