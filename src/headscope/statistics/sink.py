"""Attention to the sink: the token that takes most weight from others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.example import Example
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.spec import to_spec
from headscope.core.tokens import ROLES, Tokens
from headscope.core.trace import Visible
from headscope.maps.row_wise import RowWise
from headscope.maps.rows import Sums, Weights, iterate_layers, masked_sums, select_key
from headscope.maps.token_types import type_masks

KINDS = ("cls", "sep", "special", "punctuation", "word")
"""What a sink can be; "special" is any special token but [CLS] and [SEP]."""


def sum_received(weights: Weights, others: Visible) -> Float[Tensor, "batch key"]:
    """Return the weight that each key takes from other tokens, summed over heads and rows."""
    return (weights.sum(1, dtype=torch.float64) * others).sum(1)


def find_sink(received: Float[Tensor, "batch key"], seen: Int[Tensor, "batch key"]) -> Int[Tensor, " batch"]:
    """Return the key that takes most weight from other tokens, of those that a query sees; the first of several."""
    return received.masked_fill(seen == 0, -torch.inf).argmax(-1)


def token_kinds(tokens: Tokens, examples: Sequence[Example]) -> Int[Tensor, "batch token"]:
    """Return the kind of each token, as an index in KINDS."""
    roles = tokens.roles.cpu()
    kinds = torch.full_like(roles, KINDS.index("word"))
    punctuation = type_masks(tokens, examples, ["punctuation"], subtokens="all")[:, 0].cpu()
    kinds[punctuation] = KINDS.index("punctuation")
    kinds[roles > 0] = KINDS.index("special")
    for role in ("cls", "sep"):
        kinds[roles == ROLES.index(role)] = KINDS.index(role)
    return kinds


@dataclass(frozen=True)
class Sink(RowWise):
    """Mean weight from all other tokens on the sink, by what the sink is: [CLS], [SEP], punctuation, a word.

    The sink of a layer is found in each example: the key that takes most raw attention from other tokens, the heads
    added, whichever lens is measured. Every example has a value for the kind of its sink and none for the others, so
    `sink_n` counts how often the sink is of each kind. Only in self attention.
    """

    needs = frozenset({"maps", "tags"})
    scope = "stack"  # a GPU measures the heads of all layers as if they were of one, but a sink is that of one layer
    cites = ("clark2019", "sun2021")
    quantities: ClassVar = {"sink": "weight on the sink"}

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """Return the raw lens, in which the sink is found, unless it is the measured lens."""
        raw: Lens = lenses.make("raw")
        return () if lens == raw else (raw,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the kinds of tokens."""
        return {"kind": KINDS}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:
        """Return the kind of each key, and the positions of queries and keys."""
        return token_kinds(keys, examples), queries.positions.cpu(), keys.positions.cpu()

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the tables of some queries; a sink is any key."""
        kinds, queries, positions = tables
        return kinds, queries[:, rows], positions

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of other tokens that see the sink, of whose column alone weights are read."""
        maps, (kinds, queries, keys) = batch.focus, self.token_tables(batch)
        if maps.site.endswith("cross"):
            return _no_values(batch)
        layers = []
        for layer, (weights, visible) in zip(maps.parts, iterate_layers(_raw_maps(batch)), strict=True):
            others = _see_others(visible, queries, keys)
            key = find_sink(sum_received(weights, others), visible.sum(1))
            seen = others.gather(-1, key[:, None, None].expand(-1, visible.shape[1], 1))[..., 0]  # batch query
            mean = masked_sums(select_key(layer, key), seen[:, None], dim=-1).mean
            layers.append(_by_kind(mean, kinds.gather(-1, key[:, None])))
        return {"sink": torch.stack(layers, dim=1)}

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the weight on every key, and how many rows of other tokens see it: the sink is known at the end."""
        _, queries, keys = self.token_tables(batch)
        columns, received = [], []
        for (weights, visible), (raw, _) in zip(
            iterate_layers(batch.focus), iterate_layers(_raw_maps(batch)), strict=True
        ):
            others, missing = _see_others(visible, queries, keys), (0, keys.shape[-1] - visible.shape[-1])
            sums = masked_sums(weights, others[:, None], dim=2), Sums(sum_received(raw, others), visible.sum(1))
            of_key, of_raw = (Sums(*(pad(table, missing) for table in (entry.total, entry.count))) for entry in sums)
            columns.append(of_key)
            received.append(of_raw)
        return {"sink": _stack(columns), "received": _stack(received)}

    def finish_sums(self, sums: Mapping[str, Sums], batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of other tokens that see the sink."""
        if batch.focus.site.endswith("cross"):
            return _no_values(batch)
        kinds, layers = self.token_tables(batch)[0], []
        for index in range(len(batch.focus.layers)):
            key = find_sink(sums["received"].total[:, index], sums["received"].count[:, index])
            mean = sums["sink"].mean[:, index]  # batch head key
            column = mean.gather(-1, key[:, None, None].expand(-1, mean.shape[1], 1))[..., 0]
            layers.append(_by_kind(column, kinds.gather(-1, key[:, None])))
        return {"sink": torch.stack(layers, dim=1)}


def _raw_maps(batch: Batch) -> Maps:
    return batch.maps["model", to_spec(lenses.make("raw"))]


def _see_others(visible: Visible, queries: Int[Tensor, "batch query"], keys: Int[Tensor, "batch _"]) -> Visible:
    """Return which keys each query sees but itself."""
    return visible & (queries[:, :, None] != keys[:, None, : visible.shape[-1]])


def _no_values(batch: Batch) -> Mapping[str, Tensor]:
    maps = batch.focus
    shape = (len(maps.examples), len(maps.layers), len(maps.heads), len(KINDS))
    return {"sink": torch.full(shape, torch.nan, device=maps.visible[0].device)}


def _stack(layers: Sequence[Sums]) -> Sums:
    return Sums(*(torch.stack(tables, dim=1) for tables in zip(*((e.total, e.count) for e in layers), strict=True)))


def _by_kind(values: Float[Tensor, "batch head"], kind: Int[Tensor, "batch 1"]) -> Float[Tensor, "batch head kind"]:
    index = torch.arange(len(KINDS), device=kind.device)
    return torch.where((kind == index)[:, None], values[..., None], torch.nan)
