"""Parts of speech of English words, without a network and without a large model.

A linear model, trained on the English Web Treebank of Universal Dependencies by docs/runs/tagger.py; EWT_NOTICE beside
this file says what that is. Words are tagged from left to right: a tag's score is the sum of its weights for all that
holds of the word, its neighbours and the tags before it (`tagger_features.py`), and the highest score wins.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from headscope.data.tagging.features import END, START, Features, kind_of
from headscope.data.tagging.weights import Weights, read_weights
from headscope.data.tokenizing.words import sentences

KEPT = 50_000  # words and pairs that are kept at a time, of each kind
NO_TAG = -1  # the tag of what stands before the first word


class Tagger:
    """Gives each word its universal part of speech.

    >>> english().tag("She wrote him a letter .".split())
    ['PRON', 'VERB', 'PRON', 'DET', 'NOUN', 'PUNCT']
    """

    def __init__(self, weights: Weights) -> None:
        features = Features(weights.classes)
        self._weights = weights
        self._table = np.concatenate([weights.table, np.zeros((1, len(weights.tags)), np.int8)])
        self._own = _Kept(lambda key: weights.places(features.own(key)))
        self._around = _Kept(lambda word: [weights.places(each) for each in features.around(word)])
        self._pair = _Kept(lambda key: [weights.places(each) for each in features.pair(key)])
        self._history = _Kept(lambda key: weights.total(features.history(key)))
        self._word_history = _Kept(lambda key: weights.total(features.word_history(key)))
        self._next_history = _Kept(lambda key: weights.total(features.next_history(key)))

    def tag(self, words: Sequence[str]) -> list[str]:
        """The tags of the words of a text, one sentence after the other."""
        tags, found = self._weights.tags, []
        for start, end in sentences(words):
            found += [tags[each] for each in self._sentence(words[start:end])]
        return found

    def _sentence(self, words: Sequence[str]) -> list[int]:
        sure, found = self._weights.sure, []
        static = iter(self._static(words))
        last = older = NO_TAG
        for word, following in zip(words, [*words[1:], END], strict=True):
            tag = sure.get(word)
            if tag is None:
                history, own = self._history[last, older], self._word_history[word, last]
                rows = zip(next(static), history, own, self._next_history[following, last], strict=True)
                scores = [a + b + c + d for a, b, c, d in rows]
                tag = scores.index(max(scores))
            found.append(tag)
            last, older = tag, last
        return found

    def _static(self, words: Sequence[str]) -> list[list[int]]:
        """What does not depend on other tags, for all words of a sentence at once that are not sure."""
        kind, sure = kind_of(words), self._weights.sure
        rows: list[int] = []
        starts: list[int] = []
        around, pair, padded = self._around, self._pair, [START, START, *words, END, END]
        for older, last, word, following, later in zip(*(padded[place:] for place in range(5)), strict=False):
            if word not in sure:
                starts.append(len(rows))
                rows.append(len(self._table) - 1)  # zeros, for a word of which nothing is known
                rows += self._own[kind, word]
                rows += pair[last, word][0]
                rows += pair[word, following][1]
                rows += around[last][0]
                rows += around[following][1]
                rows += around[older][2]
                rows += around[later][3]
        if not starts:
            return []
        found: list[list[int]] = np.add.reduceat(self._table[rows], starts, axis=0, dtype=np.int64).tolist()
        return found


@cache
def english() -> Tagger:
    """The tagger that comes with the package."""
    return Tagger(read_weights())


class _Kept(dict[Any, Any]):
    """What follows from a word or a pair of words, found once and kept."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Any) -> Any:
        if len(self) >= KEPT:
            self.clear()
        found = self[key] = self._find(key)
        return found
