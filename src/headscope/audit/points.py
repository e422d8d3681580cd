"""For which examples a cue applies, and what it points to there."""

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from headscope.audit.labeled_texts import LabeledTexts, prepare_pairs, prepare_texts
from headscope.audit.occurrences import Occurrences, check_ngrams, check_patterns, find_occurrences, pair_occurrences
from headscope.audit.options import CueOptions
from headscope.audit.words import Integers
from headscope.core.errors import InputError
from headscope.core.prose import join_words

Variant = Literal["exclusive", "either"]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class CuePoints:
    """One row for each example and each cue that applies to it, sorted by cue and then by example.

    `outcomes` are 1 where the cue points to the right choice and 0 where it does not; of a classification they are the
    label of the example. `chances` is the probability that a cue in as many of the choices points to the right one; it
    is NaN for a classification.
    """

    examples: Integers
    cues: Integers
    outcomes: Integers
    chances: Floats


def check_variant(variant: str) -> Variant:
    """Return a variant, or raise InputError if it does not exist."""
    if variant not in get_args(Variant):
        raise InputError(f"variant must be {join_words(get_args(Variant), 'or')}, but got {variant!r}.")
    return cast("Variant", variant)


def find_cues(data: Any, options: CueOptions, min_count: int = 1) -> tuple[LabeledTexts, Occurrences]:
    """Return the examples as texts, and where each cue, or each pair of cues, occurs in them.

    Pairs that occur in fewer than `min_count` examples are left out.
    """
    named = check_patterns(options.patterns)
    ngrams = check_ngrams(options.ngrams, named)
    if options.pairs is None:
        prepared = prepare_texts(data, options.parts)
        return prepared, find_occurrences(prepared.texts, prepared.groups, ngrams, named)
    if options.parts is not None:
        raise InputError("parts is for single cues and pairs is for pairs of cues. Leave one of them out.")
    second, first = prepare_pairs(data, options.pairs)
    sides = [find_occurrences(side.texts, side.groups, ngrams, named) for side in (first, second)]
    owners = np.repeat(np.arange(len(second.examples)), np.diff(second.first))
    return second, pair_occurrences(sides[0], sides[1], owners, second.parts, min_count)


def find_points(data: LabeledTexts, occurrences: Occurrences, variant: Variant) -> CuePoints:
    """Return to which examples each cue applies, and whether it is right.

    To an example of a classification a cue applies if it occurs there. To a multiple choice it applies if it occurs in
    exactly one of the choices (`exclusive`) or in at least one (`either`, right if the right choice has it).
    """
    if data.kind == "classification":
        chances = np.full(len(occurrences.texts), np.nan)
        return CuePoints(occurrences.texts, occurrences.cues, data.labels[occurrences.texts], chances)
    sizes = np.diff(data.first)
    example = np.repeat(np.arange(len(sizes)), sizes)[occurrences.texts]
    right = occurrences.texts == data.first[example] + data.labels[example]
    start = np.flatnonzero(np.diff(occurrences.cues, prepend=-1) | np.diff(example, prepend=-1))
    if not len(start):
        empty = np.zeros(0, np.int64)
        return CuePoints(empty, empty, empty, np.zeros(0))
    choices = np.diff(np.append(start, len(example)))
    applies = choices == 1 if variant == "exclusive" else choices > 0
    productive = np.add.reduceat(right.astype(np.int64), start)
    chances = choices / sizes[example[start]]
    return CuePoints(example[start][applies], occurrences.cues[start][applies], productive[applies], chances[applies])
