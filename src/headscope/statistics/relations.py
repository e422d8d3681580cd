"""Attention between words that stand in a relation, beside words at the same distance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.tokens import Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers
from headscope.maps.word_pairs import ALL, mark_word_pairs
from headscope.maps.words import group_tokens, merge_layer, merge_mask

DIRECTIONS = ("i to j", "j to i", "larger")
RESERVED = "+,()="
"""Characters that separate the parts of a spec."""

WordMap = Float[Tensor, "batch head word other"]
WordMask = Bool[Tensor, "batch word other"]


@dataclass(frozen=True)
class Relations(PerExample):
    """Mean weight between two words that stand in a relation (Kovaleva et al., 2019).

    Examples say which words are related: a treebank, where word i is a word and word j its head, or a table of word
    pairs (the reader `word_pairs`). `names` are relations, with their subtypes (nsubj, obj); `all` is any. The weight
    is that between words: to a split word summed over its tokens, from it averaged, or with query=first that of its
    first token. `direction` is from i to j, from j to i, or the larger of both.

    `relations_baseline` is the mean weight of all word pairs of the example at the same distances and in the same
    direction, and `relations_gain` the difference. An example without a pair is NaN, and so is cross attention.
    """

    names: tuple[str, ...] = (ALL,)
    query: Literal["mean", "first"] = "mean"

    scope = "layer"
    cites = ("kovaleva2019", "clark2019")
    quantities: ClassVar = {
        "relations": "attention weight",
        "relations_baseline": "attention weight at the same distance",
        "relations_gain": "attention weight above that at the same distance",
    }

    def __post_init__(self) -> None:
        check_choices(self)
        if not self.names or len(set(self.names)) < len(self.names):
            raise InputError(f"names={self.names!r} of 'relations' must be one or more different relations.")
        for name in self.names:
            if not name or set(name) & set(RESERVED):
                raise InputError(f"The relation {name!r} is empty or has one of {RESERVED} in its name. Rename it.")

    def axes(self, batch: Batch) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the relations and the directions."""
        return {"relation": self.names, "direction": DIRECTIONS}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:
        """Return the tokens of every word, the numbers of the words, and the related pairs."""
        if queries is not keys and queries.real.shape != keys.real.shape:
            return ()
        groups = group_tokens(keys)
        marks = mark_word_pairs(examples, self.names, groups.words.word)
        return groups.row_shares(self.query), groups.member, groups.words.word, marks

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the pairs of an example."""
        maps, tables = batch.focus, self.token_tables(batch)
        if maps.site.endswith("cross") or not tables:
            shape = (len(maps.examples), len(maps.layers), len(maps.heads), len(self.names), len(DIRECTIONS))
            missing = torch.full(shape, torch.nan, dtype=torch.float64, device=maps.visible[0].device)
            return {"relations": missing, "relations_baseline": missing, "relations_gain": missing}
        rows, columns, word_numbers, marks = tables
        is_word = (word_numbers >= 0)[:, :, None] & (word_numbers >= 0)[:, None]
        layers = []
        for weights, visible in iterate_layers(maps):
            merged = merge_layer(weights, rows, columns)
            assert isinstance(merged, Tensor)
            seen = merge_mask(visible, rows, columns) & is_word
            directions = [
                average_pairs(*table, word_numbers, marks) for table in both_directions(merged.double(), seen)
            ]
            layers.append(torch.stack(directions, dim=-1))  # kind batch head name direction
        weight, baseline = torch.stack(layers, dim=2)
        return {"relations": weight, "relations_baseline": baseline, "relations_gain": weight - baseline}


def both_directions(weights: WordMap, seen: WordMask) -> list[tuple[WordMap, WordMask]]:
    """Return the weights from i to j, those from j to i, and the larger, at [i, j] each, and where there are any."""
    hidden = weights.masked_fill(~seen[:, None], -torch.inf)
    larger, either = torch.maximum(hidden, hidden.mT), seen | seen.mT
    return [(weights, seen), (weights.mT, seen.mT), (larger, either)]


def average_pairs(
    weights: WordMap,
    seen: WordMask,
    word_numbers: Int[Tensor, "batch word"],
    marks: Float[Tensor, "batch name word other"],
) -> Float[Tensor, "kind batch head name"]:
    """Return the mean weight of the related pairs, and that of all pairs at the same distances."""
    weights, related = weights.masked_fill(~seen[:, None], 0.0), marks.double() * seen[:, None]
    count = related.sum((-2, -1))[:, None]  # batch 1 name
    tables = weights, average_distances(weights, seen, word_numbers)
    return torch.stack([torch.einsum("bhij,bnij->bhn", table, related) / count for table in tables])


def average_distances(weights: WordMap, seen: WordMask, word_numbers: Int[Tensor, "batch word"]) -> WordMap:
    """Return in every cell the mean weight of all cells with the same distance between their words, and 0 for none."""
    heads, width = weights.shape[1:3]
    position = (word_numbers >= 0).cumsum(-1)
    distance = (position[:, None] - position[:, :, None] + width).flatten(1)  # batch cell, from 0
    bins = torch.zeros(len(weights), heads, 2 * width + 1, dtype=weights.dtype, device=weights.device)
    cells = distance[:, None].expand(-1, heads, -1)
    total = bins.scatter_add(-1, cells, weights.flatten(2))
    count = bins[:, 0].scatter_add(-1, distance, seen.to(weights).flatten(1))
    return (total / count.clamp(min=1)[:, None]).gather(-1, cells).view_as(weights)
