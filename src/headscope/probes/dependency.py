"""The attention head that points best from words to their syntactic heads, for each relation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.maps import Maps
from headscope.core.probe import Probe, WordStream
from headscope.maps.dependencies import (
    NEXT,
    OFFSETS,
    ControlHeads,
    HeadsOf,
    align_trees,
    check_counted,
    list_relations,
    read_heads,
)
from headscope.maps.rows import iterate_layers
from headscope.results.accuracies import divide, document_name, number_documents, tabulate_accuracies

TASKS = ("dependency", "control")
PREDICTORS = ("head", "fixed_offset", "right_branching")
DIRECTIONS = ("dependent to head", "head to dependent")
HEAD_DIMS = ("task", "relation", "layer", "head", "direction")


@dataclass(frozen=True)
class Dependency(Probe):
    """One attention head for each syntactic relation (Clark et al., 2019).

    A word's predicted head is the word that it attends to most, or the word that attends to it most; the word itself
    and special tokens are no candidates. For every relation with at least `min_count` occurrences, the attention head
    and the direction with the best accuracy are chosen on the training documents and reported on the others, beside the
    best fixed offset, chosen in the same way, and the next word (right-branching). Relations are those of the
    treebank, subtypes apart; `all` is every word but roots.

    The control task gives every word form an offset to its head at random, by `seed`, and chooses anew.
    """

    min_count: int = 100
    seed: int = 0

    cites = ("clark2019", "hewitt2019")

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise InputError(f"min_count={self.min_count} of 'dependency' must be at least 1.")

    def fit(self, train: WordStream, test: WordStream) -> xr.Dataset:
        """Choose heads and offsets on `train`, and count right answers in `test`."""
        examples = [*train.examples, *test.examples]
        relations = list_relations(train.examples, test.examples, self.min_count)
        tasks = (read_heads, ControlHeads.draw(examples, self.seed))
        seen = _add_up(train, list(relations), tasks, None)
        check_counted(int(seen.counts.sum()), "training")
        choice = _choose(seen)
        new = _add_up(test, list(relations), tasks, choice)
        check_counted(int(new.counts.sum()), "test")
        groups = {"relation": list(relations)}
        names: dict[str, Any] = {"tasks": TASKS, "predictors": PREDICTORS, "groups": groups, "seed": self.seed}
        result = tabulate_accuracies(new.picked, new.counts, **names)
        by_half = np.stack([tally.head_accuracy for tally in (seen, new)])
        return result.assign(
            count=("relation", list(relations.values()), {"long_name": "occurrences in all documents"}),
            head_accuracy=(("half", *HEAD_DIMS), by_half, {"long_name": "accuracy of one head", "units": ""}),
            best_layer=(("task", "relation"), np.array(new.layers)[choice.layer]),
            best_head=(("task", "relation"), np.array(new.heads)[choice.head]),
            best_direction=(("task", "relation"), np.array(DIRECTIONS, object)[choice.direction]),
            best_offset=(("task", "relation"), np.array(OFFSETS)[choice.offset]),
        ).assign_coords(
            half=["train", "test"], layer=list(new.layers), head=list(new.heads), direction=list(DIRECTIONS)
        )


@dataclass(frozen=True)
class _Choice:
    """Indices of the best head and of the best offset."""

    layer: Int[np.ndarray, "task relation"]
    head: Int[np.ndarray, "task relation"]
    direction: Int[np.ndarray, "task relation"]
    offset: Int[np.ndarray, "task relation"]


@dataclass(frozen=True)
class _Hits:
    """Numbers of right answers in one batch of sentences, and numbers of words."""

    by_head: Int[np.ndarray, "task batch relation layer head direction"]
    by_offset: Int[np.ndarray, "task batch relation offset"]
    counts: Int[np.ndarray, "batch relation"]

    def pick(self, choice: _Choice) -> Int[np.ndarray, "task predictor batch relation"]:
        """Return the right answers of the chosen head, of the chosen offset, and of the next word."""
        task, relation = np.indices(choice.layer.shape)
        head = self.by_head[task, :, relation, choice.layer, choice.head, choice.direction]  # task relation batch
        offset = self.by_offset[task, :, relation, choice.offset]
        following = self.by_offset[..., NEXT]
        return np.stack([head.swapaxes(1, 2), offset.swapaxes(1, 2), following], 1)


@dataclass
class _Tally:
    """Sums over all sentences, and by document the right answers of what was chosen."""

    by_head: Any  # task relation layer head direction
    by_offset: Any  # task relation offset
    counts: Int[np.ndarray, "document relation"]
    picked: Int[np.ndarray, "task predictor document relation"]
    layers: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    pruned: frozenset[tuple[int, int]] = frozenset()

    @property
    def head_accuracy(self) -> Float[np.ndarray, "task relation layer head direction"]:
        """The accuracy of every head; NaN for pruned ones."""
        accuracy = divide(self.by_head, self.counts.sum(0)[:, None, None, None])
        for layer, head in self.pruned:
            accuracy[:, :, self.layers.index(layer), self.heads.index(head)] = np.nan
        return accuracy


def _add_up(stream: WordStream, relations: Sequence[str], tasks: Sequence[HeadsOf], choice: _Choice | None) -> _Tally:
    documents = number_documents(stream.examples)
    shape = len(documents), len(relations)
    picked = np.zeros((len(tasks), len(PREDICTORS), *shape), dtype=np.int64)
    tally = _Tally(0, 0, np.zeros(shape, dtype=np.int64), picked)
    for maps in stream:
        hits = _count_hits(maps, relations, tasks)
        rows = [documents[document_name(example)] for example in maps.examples]
        tally.by_head = tally.by_head + hits.by_head.sum(1)
        tally.by_offset = tally.by_offset + hits.by_offset.sum(1)
        np.add.at(tally.counts, rows, hits.counts)
        if choice is not None:
            np.add.at(tally.picked.transpose(2, 0, 1, 3), rows, hits.pick(choice).transpose(2, 0, 1, 3))
        tally.layers, tally.heads, tally.pruned = maps.layers, maps.heads, maps.pruned
    return tally


def _count_hits(maps: Maps, relations: Sequence[str], tasks: Sequence[HeadsOf]) -> _Hits:
    trees = align_trees(maps, relations, tasks)
    candidates = trees.candidates.to(maps.visible[0].device)
    layers = [
        trees.count_hits(pick_in_both_directions(weights, candidates, visible))
        for weights, visible in iterate_layers(maps)
    ]
    return _Hits(np.stack(layers, 3), trees.count_hits(trees.offset_heads), trees.groups.sum(1).numpy())


def _choose(tally: _Tally) -> _Choice:
    """Return the most accurate head and offset, the first of equal ones."""
    accuracy = np.nan_to_num(tally.head_accuracy, nan=-1.0)
    flat = accuracy.reshape(*accuracy.shape[:2], -1).argmax(-1)
    layer, head, direction = np.unravel_index(flat, accuracy.shape[2:])
    return _Choice(layer, head, direction, tally.by_offset.argmax(-1))


def pick_most_attended(
    weights: Float[Tensor, "*heads query key"], candidates: Bool[Tensor, "*heads query key"]
) -> Int[Tensor, "*heads query"]:
    """Return the key with the largest weight among the candidates of each query; the first of equal ones.

    It is -1 where a query has no candidate, or a NaN among its weights.

    >>> pick_most_attended(torch.tensor([[0.1, 0.9, 0.3]]), torch.tensor([[True, False, True]])).tolist()
    [2]
    """
    largest, index = weights.masked_fill(~candidates, -torch.inf).max(-1)
    return index.masked_fill(~candidates.any(-1) | largest.isnan(), -1)


def pick_in_both_directions(
    weights: Float[Tensor, "batch head word other"],
    candidates: Bool[Tensor, "batch word other"],
    visible: Bool[Tensor, "batch word other"],
) -> Int[Tensor, "batch head direction word"]:
    """Return for each word the candidate that it attends to most, and the candidate that attends to it most.

    `candidates` says at [i, j] whether word j is a possible answer for word i, `visible` whether i can attend to j.
    """
    tables = (weights, candidates & visible), (weights.mT, candidates & visible.mT)
    picked = [pick_most_attended(table, allowed[:, None].expand_as(table)) for table, allowed in tables]
    return torch.stack(picked, dim=2)
