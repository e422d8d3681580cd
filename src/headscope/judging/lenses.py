"""The lenses that are judged: what they say of edges, and of tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.catalog import lenses as catalog
from headscope.core.errors import InputError
from headscope.core.lens import Lens, view
from headscope.core.maps import Maps
from headscope.core.prose import join_words
from headscope.core.spec import to_spec
from headscope.core.trace import Trace
from headscope.flow.graph import ThroughLayers
from headscope.judging.sampling import EdgeTable


@dataclass(frozen=True)
class JudgedLens:
    """A lens, the name by which it was asked for, and how its maps become one for each unit."""

    name: str
    lens: Lens
    merging: str = ""  # how heads are merged, where all of a layer are judged together

    @property
    def through_layers(self) -> bool:
        """Whether its maps reach down to the input."""
        return isinstance(self.lens, ThroughLayers)


def make_lenses(asked: Any, *, merged: bool, edges: bool) -> tuple[JudgedLens, ...]:
    """Return the lenses that are judged; raise InputError for one that says nothing of single edges, if `edges` are."""
    listed = list(asked) if isinstance(asked, list | tuple) else [asked]
    if not listed:
        raise InputError(f"No lens was given. Name at least one: {', '.join(catalog.names())}.")
    judged = tuple(_make_lens(catalog.make(lens), merged=merged) for lens in listed)
    names = [lens.name for lens in judged]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"The lens '{repeated[0]}' was given twice. Give every lens once.")
    deep = [lens.name for lens in judged if lens.through_layers]
    if edges and deep:
        raise InputError(
            f"The lens '{deep[0]}' follows attention through the layers down to the input, so it says nothing of an "
            "edge of one layer. Judge it by tokens: judge='tokens'."
        )
    return judged


def _make_lens(lens: Lens, *, merged: bool) -> JudgedLens:
    """Return a lens as it is judged; with `merged`, its own way to merge heads, if it has one."""
    name = to_spec(lens)
    if isinstance(lens, ThroughLayers) or not merged:
        return JudgedLens(name, lens)
    options: Any = lens  # a dataclass, as every lens
    if "merge" in [item.name for item in fields(options)] and not options.merge:
        return JudgedLens(name, replace(options, merge=True), "merge=true")
    return JudgedLens(name, lens)


def list_needs(judged: Sequence[JudgedLens]) -> frozenset[str]:
    """Return what a trace must hold for all lenses."""
    return frozenset({"attention"}).union(*(lens.lens.needs for lens in judged))


def view_all(trace: Trace, judged: Sequence[JudgedLens]) -> dict[str, Maps]:
    """Return the maps of all lenses."""
    return {lens.name: view(trace, lens.lens) for lens in judged}


def check_units(maps: Mapping[str, Maps], *, merged: bool) -> None:
    """Raise InputError for a lens with one map per layer, where edges are removed head by head."""
    whole = [name for name, each in maps.items() if each.merged]
    if whole and not merged:
        raise InputError(
            f"The lens '{whole[0]}' gives one map for all heads of a layer, but edges are removed in one head. Give "
            "heads='all', in the shell --heads all, to cut them in all heads of a layer."
        )


def describe_merging(judged: Sequence[JudgedLens], maps: Mapping[str, Maps]) -> list[str]:
    """Return how the maps of each lens were merged over heads."""
    return [lens.merging or ("one map per layer" if maps[lens.name].merged else "mean over heads") for lens in judged]


def read_edges(maps: Maps, layer: int, edges: EdgeTable, *, merged: bool) -> Float[Tensor, "edge batch"]:
    """Return what a lens says of edges of a layer; of all heads together, the mean of what it says of each."""
    weights = maps.layer(layer)
    at = [index.clamp(min=0).to(weights.device) for index in (edges.query, edges.key)]
    rows = torch.arange(weights.shape[0], device=weights.device).expand_as(at[0])
    if merged:
        values = weights[rows, :, at[0], at[1]].double().mean(-1)
    else:
        values = weights[rows, edges.head.clamp(min=0).to(weights.device), at[0], at[1]].double()
    return values.cpu().masked_fill(edges.key < 0, torch.nan)


def read_tokens(maps: Maps, judged: JudgedLens, queries: Tensor | None) -> list[Float[Tensor, " key"]]:
    """Return how much each token matters by a lens, one tensor for each example.

    That is its row at the token that is read (without one, the mean of the rows of all tokens): of a lens through the
    layers, in the top layer; of any other, the mean over layers and heads.
    """
    labels = maps.layers[-1:] if judged.through_layers else maps.layers
    rows = torch.stack([maps.layer(label).double().mean(1) for label in labels]).mean(0)  # batch query key
    rows = rows.masked_fill(~maps.keys.real.to(rows.device)[:, None], 0)
    if queries is not None:
        return list(rows[torch.arange(len(rows), device=rows.device), queries.to(rows.device)])
    real = maps.queries.real.to(rows.device)[:, :, None]
    return list(torch.where(real, rows, 0).sum(1) / real.sum(1))


def describe_through(judged: Sequence[JudgedLens]) -> str:
    """Return how the importance of tokens was read from lenses, for a stamp."""
    deep = [lens.name for lens in judged if lens.through_layers]
    top = f"; top layer: {join_words(deep)}" if deep else ""
    return f"row of the token that is read; mean over layers and heads{top}"
