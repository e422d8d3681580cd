"""Cues counted one by one, literally from the definitions."""

import math
from functools import cache

from headscope.audit.words import list_words


@cache
def list_ngrams(text, length):
    words = list_words(text)
    return {" ".join(words[start : start + length]) for start in range(len(words) - length + 1)}


def count_choice_cue(examples, cue, *, either=False):
    """Return applicability, the number of right ones, and the mean chance over the examples to which it applies."""
    length, applicable, productive, chances = len(cue.split(" ")), 0, 0, []
    for example in examples:
        present = [cue in list_ngrams(choice, length) for choice in example.columns["choices"]]
        if any(present) if either else sum(present) == 1:
            applicable += 1
            productive += present[example.label]
            chances.append(sum(present) / len(present))
    return applicable, productive, sum(chances) / len(chances) if chances else math.nan


def choice_pmi(examples, cue, smoothing):
    """Return the log of p(right | cue) / p(right), over choices."""
    length = len(cue.split(" "))
    rows = [
        (cue in list_ngrams(choice, length), index == example.label)
        for example in examples
        for index, choice in enumerate(example.columns["choices"])
    ]
    rate = sum(right for _, right in rows) / len(rows)
    present = sum(has for has, _ in rows)
    both = sum(has and right for has, right in rows)
    return math.log((both + smoothing * rate) / (present + smoothing) / rate)


def count_class_cue(examples, cue, label):
    """Return the number of texts with a cue, and how many of them have a label."""
    length = len(cue.split(" "))
    labels = [
        example.label
        for example in examples
        if any(cue in list_ngrams(text, length) for text in (example.text, example.pair or ""))
    ]
    return len(labels), labels.count(label)


def all_cues(texts, lengths):
    return {cue for text in texts for length in lengths for cue in list_ngrams(text, length)}


def count_choice_pair(examples, first, second, *, column="claim", either=False):
    """Return applicability and the number of right ones of a word in a column and another in the choices."""
    holding = [example for example in examples if first in list_ngrams(example.columns[column], len(first.split(" ")))]
    return count_choice_cue(holding, second, either=either)


def count_class_pair(examples, first, second, label):
    """Return the number of examples with a word in the text and another in the pair, and how many have a label."""
    labels = [
        example.label
        for example in examples
        if first in list_ngrams(example.text, 1) and second in list_ngrams(example.pair or "", 1)
    ]
    return len(labels), labels.count(label)
