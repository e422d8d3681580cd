"""Attention to the sink: the token that takes most weight from others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.example import Example
from headscope.core.lens import Lens
from headscope.core.maps.factored import Factored
from headscope.core.spec import to_spec
from headscope.core.tokens import ROLES, Tokens
from headscope.core.trace import Visible
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Weights, iterate_layers, masked_mean, select_key
from headscope.maps.token_types import type_masks

KINDS = ("cls", "sep", "special", "punctuation", "word")
"""What a sink can be; "special" is any special token but [CLS] and [SEP]."""


def find_sink(weights: Weights, visible: Visible) -> Int[Tensor, " batch"]:
    """Return the key that takes most weight from other tokens, summed over heads; the first of several."""
    itself = torch.eye(visible.shape[-1], dtype=torch.bool, device=visible.device)
    received = (weights.sum(1, dtype=torch.float64) * (visible & ~itself)).sum(1)  # batch key
    return received.masked_fill(~visible.any(1), -torch.inf).argmax(-1)


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
class Sink(PerExample):
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

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the kind of each key."""
        return (token_kinds(keys, examples),)

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of other tokens that see the sink."""
        maps, (kinds,) = batch.focus, self.token_tables(batch)
        if maps.site.endswith("cross"):
            shape = (len(maps.examples), len(maps.layers), len(maps.heads), len(KINDS))
            return {"sink": torch.full(shape, torch.nan, device=maps.visible[0].device)}
        raw = batch.maps["model", to_spec(lenses.make("raw"))]
        layers = []
        for layer, (weights, visible) in zip(maps.parts, iterate_layers(raw), strict=True):
            key = find_sink(weights, visible)
            layers.append(_by_kind(_mean_of_others(layer, visible, key), kinds.gather(-1, key[:, None])))
        return {"sink": torch.stack(layers, dim=1)}


def _mean_of_others(
    layer: Weights | Factored, visible: Visible, key: Int[Tensor, " batch"]
) -> Float[Tensor, "batch head"]:
    """Return the mean weight on one key of each example, from the other tokens that see it."""
    other = torch.arange(visible.shape[1], device=key.device) != key[:, None]  # batch query
    seen = visible.gather(-1, key[:, None, None].expand(-1, visible.shape[1], 1))[..., 0]
    return masked_mean(select_key(layer, key), (seen & other)[:, None], dim=-1)


def _by_kind(values: Float[Tensor, "batch head"], kind: Int[Tensor, "batch 1"]) -> Float[Tensor, "batch head kind"]:
    index = torch.arange(len(KINDS), device=kind.device)
    return torch.where((kind == index)[:, None], values[..., None], torch.nan)
