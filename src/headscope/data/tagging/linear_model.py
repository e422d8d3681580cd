"""A small linear model for the parts of speech of English words.

It was trained on the English Web Treebank of Universal Dependencies by docs/runs/tagger.py; see EWT_NOTICE beside the
weights. Words are tagged from left to right: the score of a tag is the sum of its weights over the features of the
word, its neighbours and the tags before it (features.py), and the highest score wins.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from headscope.data.tagging.features import END, START, Features, sentence_style
from headscope.data.tagging.weights import Weights, read_weights
from headscope.data.tokenizing.words import split_sentences

CACHE_SIZE = 50_000  # words or pairs in each cache
NO_TAG = -1  # the tag before the first word


class LinearTagger:
    """Tags words by their universal parts of speech.

    >>> load_english().tag("She wrote him a letter .".split())
    ['PRON', 'VERB', 'PRON', 'DET', 'NOUN', 'PUNCT']
    """

    def __init__(self, weights: Weights) -> None:
        features = Features(weights.classes)
        self._weights = weights
        self._table = np.concatenate([weights.table, np.zeros((1, len(weights.tags)), np.int8)])
        self._own = _Cache(lambda key: weights.find_rows(features.own(key)))
        self._around = _Cache(lambda word: [weights.find_rows(names) for names in features.around(word)])
        self._pair = _Cache(lambda key: [weights.find_rows(names) for names in features.pair(key)])
        self._history = _Cache(lambda key: weights.sum_rows(features.history(key)))
        self._word_history = _Cache(lambda key: weights.sum_rows(features.word_history(key)))
        self._next_history = _Cache(lambda key: weights.sum_rows(features.next_history(key)))

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
                history, own = self._history[last, older], self._word_history[word, last]
                rows = zip(next(static), history, own, self._next_history[following, last], strict=True)
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
                rows += self._own[style, word]
                rows += pair[last, word][0]
                rows += pair[word, following][1]
                rows += around[last][0]
                rows += around[following][1]
                rows += around[older][2]
                rows += around[later][3]
        if not starts:
            return []
        scores: list[list[int]] = np.add.reduceat(self._table[rows], starts, axis=0, dtype=np.int64).tolist()
        return scores


@cache
def load_english() -> LinearTagger:
    """Return the tagger with the bundled weights."""
    return LinearTagger(read_weights())


class _Cache(dict[Any, Any]):
    """A dict that computes missing values, and is cleared when it is full."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: Any) -> Any:
        if len(self) >= CACHE_SIZE:
            self.clear()
        value = self[key] = self._compute(key)
        return value
