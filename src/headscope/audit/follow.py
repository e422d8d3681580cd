"""Where one cue occurs, and which choice it points to."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.audit.labeled_texts import choose_parts, select_texts
from headscope.audit.occurrences import Text, check_patterns, find_occurrences
from headscope.audit.words import Integers, list_words, locate_words, normalize_text
from headscope.core.errors import InputError
from headscope.core.example import Example

Booleans = np.ndarray[Any, np.dtype[np.bool_]]


def has_cue(
    examples: Sequence[Example], cue: str, *, parts: str | Sequence[str] | None = None, pattern: bool = False
) -> Booleans:
    """Return whether each example has a cue in one of its parts, which are those of `hs.cues`.

    A cue is a word or an n-gram as `hs.cues` names it, or a regular expression with `pattern=True`.

    >>> has_cue([Example("0", "It isn't wet."), Example("1", "It is.")], "is n't").tolist()
    [True, False]
    """
    names = choose_parts(examples, parts)
    texts = [select_texts(example, names) for example in examples]
    groups = np.repeat(np.arange(len(examples)), [len(own) for own in texts])
    mask = np.zeros(len(examples), bool)
    mask[groups[_find_texts([text for own in texts for text in own], cue, pattern=pattern)]] = True
    return mask


def point_to_choice(examples: Sequence[Example], cue: str, *, pattern: bool = False) -> Integers:
    """Return for each example the index of the one choice with a cue; −1 where it is in none or in several.

    >>> data = [Example("0", "It rains.", columns={"choices": ("it is wet", "it is not wet")})]
    >>> point_to_choice(data, "not").tolist()
    [1]
    """
    sizes = [len(example.columns.get("choices", ())) for example in examples]
    if missing := [example.id for example, size in zip(examples, sizes, strict=True) if not size]:
        raise InputError(f"A cue points to one of several choices, but example '{missing[0]}' has none.")
    first = np.cumsum([0, *sizes])
    texts = [text for example in examples for text in example.columns["choices"]]
    choices = _find_texts(texts, cue, pattern=pattern)
    owners = np.repeat(np.arange(len(sizes)), sizes)[choices]
    points = np.full(len(sizes), -1)
    points[owners] = choices - first[owners]
    return np.where(np.bincount(owners, minlength=len(sizes)) == 1, points, -1)


def find_cue_spans(text: str, cue: str) -> list[tuple[int, int]]:
    """Return the start and end in a text of every occurrence of a word or an n-gram.

    >>> find_cue_spans("It isn't, and it isn't wet.", "is n't")
    [(3, 8), (17, 22)]
    """
    spans, words = locate_words(text), list_words(text)
    for wanted in _split_cue(cue):
        size = len(wanted)
        starts = [index for index in range(len(words) - size + 1) if words[index : index + size] == wanted]
        if starts:
            return [(spans[index][0], spans[index + size - 1][1]) for index in starts]
    return []


def _split_cue(cue: str) -> list[list[str]]:
    """Return the words of a cue, between spaces as `hs.cues` names it, and as the words of a text."""
    named = normalize_text(cue).split()
    if not named:
        raise InputError(f"The cue {cue!r} has no word. Give a word or an n-gram.")
    return [named, list_words(cue)]


def _find_texts(texts: Sequence[Text], cue: str, *, pattern: bool) -> Integers:
    """Return the indices of the texts with a cue."""
    groups = np.arange(len(texts))
    if pattern:
        return find_occurrences(texts, groups, (), check_patterns([cue])).texts
    for words in _split_cue(cue):
        occurrences = find_occurrences(texts, groups, (len(words),), {})
        if (name := " ".join(words)) in occurrences.names:
            return np.asarray(occurrences.texts[occurrences.cues == occurrences.names.index(name)])
    return np.zeros(0, np.int64)
