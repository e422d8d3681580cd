"""Train a probe of syntax on one stream of maps, and report on another."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from headscope.core.errors import InputError
from headscope.core.maps import Maps
from headscope.core.probe import WordStream
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
from headscope.probing.arcs import ArcWeights, Attention, Sentence, fit_weights, predict_heads, score_arcs
from headscope.probing.word_vectors import Vectors
from headscope.results.accuracies import compare_baselines, document_name, number_documents, tabulate_accuracies

TASKS = ("dependency", "control")
DISTANCES = "distances"
"""The predictor that is the same probe with one-hot distances in place of attention: what attention adds to it."""

PREDICTORS = ("probe", "fixed_offset", "right_branching", DISTANCES)
BASELINES = ("fixed_offset", DISTANCES)
DIRECTIONS = ("dependent to head", "head to dependent")
MAX_DISTANCE = max(OFFSETS)
"""Longer distances are counted as this one."""

DistanceWeights = Float[np.ndarray, "dim kind distance"]


MAX_BYTES = 2 * 2**30
"""Memory for sentences that are kept from one pass to the next."""


@dataclass
class SentenceStream:
    """The sentences of a stream, which can be iterated any number of times.

    The first batches are kept in memory, up to `max_bytes`; the model runs again on the others at every pass.
    """

    stream: WordStream
    relations: Sequence[str]
    tasks: Sequence[HeadsOf]
    vocabulary: Mapping[str, int]
    max_bytes: int = MAX_BYTES
    labels: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # layers and heads, once a batch was read
    _kept: list[list[Sentence]] = field(default_factory=list)
    _bytes: int = 0
    _full: bool = False

    def __iter__(self) -> Iterator[Sentence]:
        """Yield one sentence after another."""
        for batch in self._kept:
            yield from batch
        start = len(self._kept)
        for maps in self.stream.batches(start):
            batch = self._convert(maps)
            self._bytes += sum(sentence.attention.nbytes for sentence in batch)
            self._full = self._full or self._bytes > self.max_bytes
            if not self._full:
                self._kept.append(batch)
            yield from batch

    def _convert(self, maps: Maps) -> list[Sentence]:
        self.labels = maps.layers, maps.heads
        documents = number_documents(self.stream.examples)
        trees = align_trees(maps, self.relations, self.tasks)
        layers = [weights.permute(0, 2, 3, 1).cpu().numpy() for weights, _ in iterate_layers(maps)]
        sentences = []
        for row, example in enumerate(maps.examples):
            word_numbers = trees.words[row].numpy()
            positions = np.argsort(np.where(word_numbers < 0, word_numbers.max() + 1, word_numbers))[
                : (word_numbers >= 0).sum()
            ]
            rank = np.full(len(word_numbers) + 1, -1)  # the last is that of no head
            rank[positions] = np.arange(len(positions))
            attention = np.concatenate([layer[row][np.ix_(positions, positions)] for layer in layers], -1)
            words = example.words or ()
            sentences.append(
                Sentence(
                    attention=np.nan_to_num(attention),
                    forms=np.array([self.vocabulary[words[number]] for number in word_numbers[positions]]),
                    heads=rank[trees.heads[:, row].numpy()][:, positions],
                    groups=trees.groups[row].numpy()[positions],
                    document=documents[document_name(example)],
                )
            )
        return sentences


@dataclass(frozen=True)
class ProbeTrainingOptions:
    """What decides the weights of a trained probe, beside the data."""

    factor_kinds: int  # of factors, see `probing.arcs`
    l2: float
    iterations: int
    min_count: int
    seed: int


def check_training(probe: str, l2: float, iterations: int, min_count: int) -> None:
    """Raise InputError for parameters with which a probe of this name cannot be trained."""
    if l2 < 0 or iterations < 1 or min_count < 1:
        raise InputError(
            f"l2={l2} of '{probe}' must be at least 0, and iterations={iterations} and min_count={min_count} "
            "at least 1."
        )


def train_probe(
    train: WordStream, test: WordStream, embed: Callable[[Sequence[str]], Vectors], options: ProbeTrainingOptions
) -> xr.Dataset:
    """Train weights on `train` for the trees and for the control task, and count right answers in `test`."""
    examples = [*train.examples, *test.examples]
    relations = list_relations(train.examples, test.examples, options.min_count)
    tasks = (read_heads, ControlHeads.draw(examples, options.seed))
    forms = list(dict.fromkeys(word for example in examples for word in example.words or ()))
    vocabulary = {form: row for row, form in enumerate(forms)}
    vectors = embed(forms)
    seen, new = (SentenceStream(stream, list(relations), tasks, vocabulary) for stream in (train, test))
    offsets = choose_offsets(seen, len(relations))
    settings: dict[str, Any] = {
        "factor_kinds": options.factor_kinds,
        "l2": options.l2,
        "iterations": options.iterations,
    }
    fits = [fit_weights(seen, vectors, task=task, **settings) for task in range(len(TASKS))]
    apart = replace_attention(seen)
    by_distance = [fit_weights(apart, vectors, task=task, **settings)[0] for task in range(len(TASKS))]
    hits, counts = count_answers(new, vectors, [weights for weights, _ in fits], by_distance, offsets)
    check_counted(int(counts.sum()), "test")
    names: dict[str, Any] = {"tasks": TASKS, "groups": {"relation": list(relations)}, "seed": options.seed}
    result = tabulate_accuracies(hits, counts, predictors=PREDICTORS, **names)
    result = result.merge(compare_baselines(hits, counts, PREDICTORS, BASELINES, **names))
    layers, heads = seen.labels
    strength = np.stack([weigh_heads(weights).reshape(2, len(layers), len(heads)) for weights, _ in fits])
    long_name = "weight of the head" if vectors.shape[1] == 1 else "norm of the head's weights"
    return result.assign(
        count=("relation", list(relations.values()), {"long_name": "occurrences in all documents"}),
        head_weight=(("task", "direction", "layer", "head"), strength, {"long_name": long_name, "units": ""}),
        best_offset=(("task", "relation"), np.array(OFFSETS)[offsets]),
        converged=("task", [converged for _, converged in fits]),
    ).assign_coords(layer=list(layers), head=list(heads), direction=list(DIRECTIONS))


def choose_offsets(sentences: Iterable[Sentence], relations: int) -> Int[np.ndarray, "task relation"]:
    """Return the index of the best of OFFSETS for each task and relation."""
    hits = np.zeros((len(TASKS), len(OFFSETS), relations), dtype=np.int64)
    words = 0
    for sentence in sentences:
        words += int(sentence.groups.sum())
        for task in range(len(TASKS)):
            hits[task] += sentence.count_hits(predict_offsets(sentence), task)
    check_counted(words, "training")
    return np.asarray(hits.argmax(1))


def predict_offsets(sentence: Sentence) -> Int[np.ndarray, "offset word"]:
    """Return the word at each of OFFSETS from every word, or the first or last word of the sentence."""
    length = len(sentence.forms)
    return np.asarray(np.clip(np.arange(length) + np.array(OFFSETS)[:, None], 0, length - 1))


def replace_attention(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Return the sentences with one-hot distances in place of attention."""
    return [replace(sentence, attention=encode_distances(len(sentence.forms))) for sentence in sentences]


@cache
def encode_distances(length: int) -> Attention:
    """Return for each two words of a sentence a one-hot vector of how far the second is behind the first.

    Words before it have the distances of the other direction, which `score_arcs` reads, too.

    >>> encode_distances(3)[0].argmax(-1).tolist(), encode_distances(3)[2].any()
    ([0, 0, 1], np.False_)
    """
    apart = np.arange(length) - np.arange(length)[:, None]
    return np.asarray(np.equal.outer(apart.clip(max=MAX_DISTANCE), np.arange(1, MAX_DISTANCE + 1)), np.float32)


def count_answers(
    sentences: SentenceStream,
    vectors: Vectors,
    weights: Sequence[ArcWeights],
    by_distance: Sequence[DistanceWeights],
    offsets: Int[np.ndarray, "task relation"],
) -> tuple[Int[np.ndarray, "task predictor document relation"], Int[np.ndarray, "document relation"]]:
    """Return the right answers of the probe and of the baselines by document, and the numbers of words."""
    documents, relations = len(number_documents(sentences.stream.examples)), offsets.shape[1]
    hits = np.zeros((len(TASKS), len(PREDICTORS), documents, relations), dtype=np.int64)
    counts = np.zeros((documents, relations), dtype=np.int64)
    factors, apart_factors = (
        [np.einsum("fd,dkh->fkh", vectors, task_weights.astype(vectors.dtype)) for task_weights in by_task]
        for by_task in (weights, by_distance)
    )
    for sentence in sentences:
        counts[sentence.document] += sentence.groups.sum(0)
        distances = encode_distances(len(sentence.forms))
        for task, tables in enumerate(zip(factors, apart_factors, strict=True)):
            probe_hits, distance_hits = (
                sentence.count_hits(predict_heads(score_arcs(attention, table[sentence.forms])), task)
                for attention, table in zip((sentence.attention, distances), tables, strict=True)
            )
            by_offset = sentence.count_hits(predict_offsets(sentence), task)  # offset relation
            offset_hits = by_offset[offsets[task], np.arange(relations)]
            hits[task, :, sentence.document] += [probe_hits, offset_hits, by_offset[NEXT], distance_hits]
    return hits, counts


def weigh_heads(weights: ArcWeights) -> Float[np.ndarray, "direction head"]:
    """Return the weight of every head where it is one number, else the norm of its weights."""
    if weights.shape[:2] == (1, 2):
        return np.asarray(weights[0])
    directions = (weights[:, direction::2] for direction in (0, 1))
    return np.stack([np.sqrt((side**2).sum((0, 1))) for side in directions])
