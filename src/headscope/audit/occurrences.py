"""In which texts each cue occurs: words, n-grams and patterns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import regex

from headscope.audit.words import EncodedTexts, Integers, encode_texts, normalize_text
from headscope.core.errors import InputError

Text = str | tuple[str, ...]
"""A text, or its words."""

MAX_LENGTH = 9
"""The most words of a cue."""

MAX_PAIRS = 50_000_000
"""The most pairs of cues, each counted as often as it occurs; they take about 100 bytes each."""

TIME_LIMIT = 10.0
"""Seconds that a pattern may take on one text: patterns such as (a|aa)+$ would take years."""


@dataclass(frozen=True)
class Occurrences:
    """Pairs of a text and a cue that occurs in it, each pair once, sorted by cue and then by text.

    `lengths` is the number of words of each cue, 0 for a pattern.
    """

    texts: Integers
    cues: Integers
    names: tuple[str, ...]
    lengths: Integers


def find_occurrences(
    texts: Sequence[Text], groups: Integers, ngrams: Sequence[int], patterns: Mapping[str, str]
) -> Occurrences:
    """Return in which groups of texts every n-gram and every pattern occurs.

    Text i belongs to `groups[i]`, such as both texts of a pair to one example; an n-gram does not cross from one text
    to another. The field `texts` of the result holds groups. Raise InputError if there is nothing to look for.
    """
    check_ngrams(ngrams, patterns)
    encoded = encode_texts(texts)
    tables = [_find_ngrams(encoded, groups, length) for length in sorted(set(ngrams))]
    tables += [_find_pattern(texts, groups, name, pattern) for name, pattern in patterns.items()]
    for table in tables[len(set(ngrams)) :]:
        if any(table.names[0] in other.names for other in tables[: len(set(ngrams))]):
            raise InputError(f"The name of the pattern '{table.names[0]}' is also a word of the texts. Rename it.")
    offsets = np.cumsum([0, *(len(table.names) for table in tables)])
    cues = [table.cues + offset for table, offset in zip(tables, offsets, strict=False)]
    return Occurrences(
        np.concatenate([table.texts for table in tables]),
        np.concatenate(cues),
        tuple(name for table in tables for name in table.names),
        np.concatenate([table.lengths for table in tables]),
    )


def pair_occurrences(
    first: Occurrences, second: Occurrences, owners: Integers, parts: Sequence[str], min_count: int = 1
) -> Occurrences:
    """Return in which groups of the second part a pair of cues occurs, whose first is in the first part of the example.

    `owners` are the examples of the groups of `second`; those of `first` are examples. Pairs of fewer than `min_count`
    examples are left out. Raise InputError if there are too many.
    """
    starts = np.searchsorted(np.sort(first.texts), np.arange(owners.max(initial=0) + 2))
    by_example = first.cues[np.argsort(first.texts, kind="stable")]
    examples = owners[second.texts]
    counts = np.diff(starts)[examples]
    if counts.sum() > MAX_PAIRS:
        raise InputError(
            f"There are {counts.sum():,} pairs of cues in {parts[0]} and {parts[1]}, more than {MAX_PAIRS:,}. Look for "
            "single words (ngrams=1), or in fewer examples."
        )
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    codes = by_example[np.repeat(starts[examples], counts) + offsets] * len(second.names) + np.repeat(
        second.cues, counts
    )
    groups = np.repeat(second.texts, counts)
    order = np.lexsort((groups, codes))
    codes, groups = codes[order], groups[order]
    distinct, cues = np.unique(codes, return_inverse=True)
    steps = (np.diff(cues, prepend=-1) != 0) | (np.diff(owners[groups], prepend=-1) != 0)
    kept = np.bincount(cues[steps], minlength=len(distinct)) >= min_count
    left, right = (side[kept] for side in np.divmod(distinct, max(len(second.names), 1)))
    names = (
        f"{first.names[one]} in {parts[0]} & {second.names[two]} in {parts[1]}"
        for one, two in zip(left.tolist(), right.tolist(), strict=True)
    )
    numbers, rows = np.cumsum(kept) - 1, kept[cues]
    lengths = first.lengths[left] + second.lengths[right]
    return Occurrences(groups[rows], numbers[cues[rows]], tuple(names), lengths)


def check_ngrams(ngrams: Sequence[int] | int, patterns: Mapping[str, str]) -> tuple[int, ...]:
    """Return the lengths of n-grams; raise InputError for one out of range, and for nothing to look for."""
    ngrams = (ngrams,) if isinstance(ngrams, int) else tuple(ngrams)
    if not ngrams and not patterns:
        raise InputError("There is nothing to look for: ngrams is empty and there are no patterns. Give at least one.")
    if any(not isinstance(length, int) or not 1 <= length <= MAX_LENGTH for length in ngrams):
        raise InputError(f"ngrams must be numbers of words from 1 to {MAX_LENGTH}, but got {ngrams}.")
    return ngrams


def check_patterns(patterns: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    """Return patterns by name; one without a name is called by its own text between slashes.

    Raise InputError for a broken pattern.
    """
    if isinstance(patterns, str):
        patterns = [patterns]
    named = dict(patterns) if isinstance(patterns, Mapping) else {f"/{pattern}/": pattern for pattern in patterns}
    for name, pattern in named.items():
        try:
            re.compile(pattern)  # the syntax is that of re, whose words for errors are plainer
            matches_empty = regex.compile(pattern).search("") is not None
        except (re.error, regex.error) as error:
            raise InputError(f"The pattern {pattern!r} is no regular expression: {error}.") from None
        if matches_empty:
            raise InputError(f"The pattern '{name}' matches an empty text, so that it is in every text. Change it.")
    return named


def _find_ngrams(encoded: EncodedTexts, groups: Integers, length: int) -> Occurrences:
    """Return the n-grams of one length. Shorter ones are numbered first, so that codes stay small."""
    size, total = len(encoded.vocabulary), len(encoded.ids)
    text_of_word = np.repeat(np.arange(len(encoded)), np.diff(encoded.starts))
    codes, positions = encoded.ids, np.arange(total)
    for shift in range(1, length):
        positions = positions[positions + shift < total]
        positions = positions[text_of_word[positions] == text_of_word[positions + shift]]
        _, ranks = np.unique(codes, return_inverse=True)
        codes = np.full(total, -1)
        codes[positions] = ranks[positions] * size + encoded.ids[positions + shift]
    distinct, first, cues = np.unique(codes[positions], return_index=True, return_inverse=True)
    starts = positions[first]
    words = [[encoded.vocabulary[word] for word in encoded.ids[starts + shift]] for shift in range(length)]
    names = tuple(" ".join(ngram) for ngram in zip(*words, strict=True))
    count = int(groups.max()) + 1 if len(groups) else 1
    pairs = np.sort(cues * count + groups[text_of_word[positions]])  # np.unique would hash them, which takes longer
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return Occurrences(pairs % count, pairs // count, names, np.full(len(distinct), length))


def _find_pattern(texts: Sequence[Text], groups: Integers, name: str, pattern: str) -> Occurrences:
    """Return the texts that match a pattern, in lower case and with straight apostrophes."""
    search = regex.compile(pattern).search
    plain = (text if isinstance(text, str) else " ".join(text) for text in texts)
    try:
        matches = np.array([search(normalize_text(text), timeout=TIME_LIMIT) is not None for text in plain], bool)
    except TimeoutError:
        raise InputError(
            f"The pattern '{name}' takes more than {TIME_LIMIT:g} seconds on one text, because it can match in very "
            "many ways. Write it without repeats of what repeats or overlaps, such as (a+)+ or (a|aa)+."
        ) from None
    matching = np.unique(groups[matches])
    return Occurrences(matching, np.zeros_like(matching), (name,), np.zeros(1, np.int64))
