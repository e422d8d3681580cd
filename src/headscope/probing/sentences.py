"""The sentences of a stream of maps, in the form that trained probes read again and again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headscope.core.maps import Maps
from headscope.core.probe import WordStream
from headscope.maps.dependencies import HeadsOf, align_trees
from headscope.maps.rows import iterate_layers
from headscope.probing.arcs import Sentence
from headscope.results.accuracies import document_name, number_documents

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
