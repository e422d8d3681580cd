"""One cue: chosen from the training data, what it points to in every example, and its words in a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.audit.cues import cues
from headscope.audit.follow import find_cue_spans, has_cue, point_to_choice
from headscope.audit.words import list_words
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.words import split_words

MIN_COUNT = 10
"""Cues that apply to fewer training examples are not chosen, nor listed."""

Pointed = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Cue:
    """A word or n-gram, and of a classification the label that it favours, and the texts it is looked for in."""

    text: str
    label: int | None = None
    texts: tuple[str, ...] = ()

    def point(self, examples: Sequence[Example]) -> Pointed:
        """Return the index of the choice or class that the cue points to, −1 where it does not apply."""
        if self.label is None:
            return np.asarray(point_to_choice(examples, self.text), dtype=np.int64)
        return np.where(has_cue(examples, self.text, parts=self.texts), self.label, -1)

    def mark(self, text: str) -> list[int]:
        """Return the numbers of the words of a text that belong to the cue.

        >>> Cue("do not").mark("We do not know, they do not care.")
        [1, 2, 6, 7]
        """
        spans = find_cue_spans(text, self.text)
        return [
            number
            for number, (start, end) in enumerate(split_words(text))
            if any(first <= start and end <= last for first, last in spans)
        ]


def count_cues(examples: Sequence[Example], texts: Sequence[str], *, min_count: int = MIN_COUNT) -> xr.Dataset:
    """Return `hs.cues` of the choices, or of these texts of a classification."""
    parts = None if "choices" in examples[0].columns else list(texts)
    return cues(list(examples), parts=parts, min_count=min_count)


def choose_cue(train: Sequence[Example], texts: Sequence[str], wanted: str | None = None) -> Cue | None:
    """Return the cue of the training data with the largest gain, or the one that is asked for.

    None where no cue is right significantly more often than by chance.
    """
    options = {} if wanted is None else {"min_count": 1}
    table = count_cues(train, texts, **options)
    if wanted is None:
        table = table.isel(cue=np.flatnonzero(table["productivity_significant"].values & (table["gain"].values > 0)))
        if not table.sizes["cue"]:
            return None
        chosen = str(table["cue"].values[0])
    else:
        chosen = " ".join(list_words(wanted))
        if chosen not in table["cue"].values:
            raise InputError(
                f"The cue '{wanted}' applies to no training example. Give a word or two that are in the texts; by "
                "default the strongest is taken."
            )
    if "choices" in train[0].columns:
        return Cue(chosen)
    names = {str(example.columns.get("label_name", example.label)): int(example.label or 0) for example in train}
    return Cue(chosen, names[str(table["label"].sel(cue=chosen).item())], tuple(texts))
