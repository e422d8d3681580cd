"""A small linear model for the parts of speech of English words.

It was trained on the English Web Treebank of Universal Dependencies by docs/runs/tagger.py; see EWT_NOTICE beside the
weights. Words are tagged from left to right: the score of a tag is the sum of its weights over the features of the
word, its neighbors and the tags before it (features.py), and the highest score wins.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.checksum import DamagedFile, guard_reading, seal_zip
from headscope.core.npz import pack_arrays, unpack_arrays
from headscope.data.bundled.files import bundled_file
from headscope.data.tagging.features import END, START, Features, sentence_style
from headscope.data.tokenizing.words import split_sentences

CACHE_SIZE = 50_000  # words or pairs in each cache
BUNDLED_SHA256 = "245f910f2dda56a1b1b4c9a058cbbbdaf999d370167ed7be9c6ce00bd58d77eb"
DAMAGED = (
    "it does not hold the weights of a tagger, or it is damaged. Install headscope again, or train the tagger again."
)
NO_TAG = -1  # the tag before the first word

Table = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True, eq=False)
class Weights:
    """A linear model: what each feature adds to the score of each tag."""

    tags: tuple[str, ...]
    rows: Mapping[str, int]  # the row of each feature
    table: Table  # row tag
    classes: Mapping[str, str]  # the tags that a word can have
    fixed_tags: Mapping[str, int]  # the tag of words that always have the same one

    def find_rows(self, names: Iterable[str]) -> list[int]:
        """Return the rows of the features that have one."""
        rows = self.rows
        return [rows[name] for name in names if name in rows]

    def sum_rows(self, names: Iterable[str]) -> list[int]:
        """Return the score of every tag for these features."""
        scores: list[int] = self.table[self.find_rows(names)].sum(0).tolist()
        return scores


class LinearTagger:
    """Tags words by their universal parts of speech.

    >>> load_english().tag("She wrote him a letter .".split())
    ['PRON', 'VERB', 'PRON', 'DET', 'NOUN', 'PUNCT']
    """

    def __init__(self, weights: Weights) -> None:
        features, cached = Features(weights.classes), lru_cache(CACHE_SIZE)
        self._weights = weights
        self._table = np.concatenate([weights.table, np.zeros((1, len(weights.tags)), np.int8)])
        self._own = cached(lambda key: weights.find_rows(features.own(key)))
        self._around = cached(lambda word: [weights.find_rows(names) for names in features.around(word)])
        self._pair = cached(lambda key: [weights.find_rows(names) for names in features.pair(key)])
        self._history = cached(lambda key: weights.sum_rows(features.history(key)))
        self._word_history = cached(lambda key: weights.sum_rows(features.word_history(key)))
        self._next_history = cached(lambda key: weights.sum_rows(features.next_history(key)))

    def tag(self, words: Sequence[str]) -> list[str]:
        """Return the tags of the words of a text; each sentence is tagged on its own."""
        names = self._weights.tags
        return [names[tag] for start, end in split_sentences(words) for tag in self._tag_sentence(words[start:end])]

    def _tag_sentence(self, words: Sequence[str]) -> list[int]:
        tags: list[int] = []
        static = iter(self._static_scores(words))
        last = older = NO_TAG
        for word, following in zip(words, [*words[1:], END], strict=True):
            tag = self._weights.fixed_tags.get(word)
            if tag is None:
                history, own = self._history((last, older)), self._word_history((word, last))
                rows = zip(next(static), history, own, self._next_history((following, last)), strict=True)
                scores = [a + b + c + d for a, b, c, d in rows]
                tag = scores.index(max(scores))
            tags.append(tag)
            last, older = tag, last
        return tags

    def _static_scores(self, words: Sequence[str]) -> list[list[int]]:
        """Return the scores that do not depend on other tags, for all words of a sentence without a fixed tag."""
        style, fixed_tags = sentence_style(words), self._weights.fixed_tags
        rows: list[int] = []
        starts: list[int] = []
        around, pair, padded = self._around, self._pair, [START, START, *words, END, END]
        for older, last, word, following, later in zip(*(padded[shift:] for shift in range(5)), strict=False):
            if word not in fixed_tags:
                starts.append(len(rows))
                rows.append(len(self._table) - 1)  # a row of zeros, for a word without known features
                rows += self._own((style, word))
                rows += pair((last, word))[0]
                rows += pair((word, following))[1]
                rows += around(last)[0]
                rows += around(following)[1]
                rows += around(older)[2]
                rows += around(later)[3]
        if not starts:
            return []
        scores: list[list[int]] = np.add.reduceat(self._table[rows], starts, axis=0, dtype=np.int64).tolist()
        return scores


@cache
def load_english() -> LinearTagger:
    """Return the tagger with the bundled weights."""
    return LinearTagger(read_weights())


def read_weights(path: Path | None = None) -> Weights:
    """Read the bundled weights, or those of another file."""
    source = path if path is not None else bundled_file("english_tagger.npz")
    with guard_reading(Path(str(source)), DAMAGED):
        content = source.read_bytes()
        if path is None and hashlib.sha256(content).hexdigest() != BUNDLED_SHA256:
            raise DamagedFile("It is not the file that headscope comes with.")
        return _parse_weights(unpack_arrays(content))


def _parse_weights(arrays: Mapping[str, Any]) -> Weights:
    tags, names = _words(arrays["tags"]), _words(arrays["names"])
    table = np.zeros((len(names), len(tags)), dtype=np.int8)
    table[np.repeat(np.arange(len(names)), arrays["counts"]), arrays["columns"]] = arrays["weights"]
    fixed_tags = dict(zip(_words(arrays["sure"]), arrays["sure_tags"].tolist(), strict=True))
    if not all(0 <= tag < len(tags) for tag in fixed_tags.values()):
        raise DamagedFile("It names tags that it does not have.")
    return Weights(
        tags=tuple(tags),
        rows={name: row for row, name in enumerate(names)},
        table=table,
        classes=dict(zip(_words(arrays["words"]), _words(arrays["classes"]), strict=True)),
        fixed_tags=fixed_tags,
    )


def write_weights(weights: Weights, path: Path) -> None:
    """Write weights; equal weights give equal files."""
    names, words, fixed = sorted(weights.rows), sorted(weights.classes), sorted(weights.fixed_tags)
    table = weights.table[[weights.rows[name] for name in names]]
    rows, columns = table.nonzero()
    arrays: dict[str, Any] = {
        "tags": _bytes(weights.tags),
        "names": _bytes(names),
        "counts": np.bincount(rows, minlength=len(names)).astype(np.uint8),
        "columns": columns.astype(np.uint8),
        "weights": table[rows, columns],
        "words": _bytes(words),
        "classes": _bytes([weights.classes[word] for word in words]),
        "sure": _bytes(fixed),
        "sure_tags": np.array([weights.fixed_tags[word] for word in fixed], dtype=np.uint8),
    }
    path.write_bytes(seal_zip(pack_arrays(arrays, compress=True)))


def _bytes(words: Iterable[str]) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def _words(table: "np.ndarray[Any, np.dtype[np.uint8]]") -> list[str]:
    text = bytes(table).decode()
    return text.split("\n") if text else []
