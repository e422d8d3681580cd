"""Tags from the built-in English tagger."""

import hashlib
import re
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from headscope.core.errors import DataWarning
from headscope.data.tagging.perceptron import english
from headscope.data.tagging.tagger import Item, Tagged, Tagging, words_at
from headscope.data.tokenizing.words import split

MADE_OF = ("bundled/english_tagger.npz", "tokenizing/words.py", "tagging/perceptron.py", "tagging/features.py")
"""What decides a tag: where one of these files changes, tags that were kept before are not used again."""


class EnglishTags(Tagging):
    """Words by rules, tags by the linear model that comes with the package."""

    def __init__(self) -> None:
        self.name = f"english {_version()}"

    def __call__(self, items: Sequence[Item]) -> list[Tagged]:
        """Split what is not split, and tag it."""
        tagger, found = english(), []
        for item in items:
            spans = tuple(split(item)) if isinstance(item, str) else None
            words = item if isinstance(item, tuple) else words_at(item, spans or ())
            found.append(Tagged(tuple(tagger.tag(words)), spans))
        return found


def warn_of_other_scripts(items: Sequence[Item]) -> None:
    """Say so where most letters are not Latin; a text in French or Turkish goes unnoticed."""
    letters = latin = 0
    for item in items:
        text = item if isinstance(item, str) else " ".join(item)
        letters += len(_LETTER.findall(text))
        latin += len(_LATIN.findall(text))
    if latin < letters / 2:
        warnings.warn(
            f"{letters - latin} of {letters} letters are not Latin, but the built-in tagger knows English only: its "
            "tags mean nothing here. Give the examples a column 'tags', or use tagger='spacy:MODEL' with a model for "
            "their language.",
            DataWarning,
            stacklevel=3,
        )


@cache
def _version() -> str:
    digest = hashlib.sha256()
    for name in MADE_OF:
        digest.update((files("headscope.data") / name).read_bytes())
    return digest.hexdigest()[:16]


_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-zª-ɏḀ-ỿ]")  # up to Latin Extended-B, and Latin Extended Additional
