"""Taggers: the interface, the built-in English tagger, and spaCy pipelines."""

import hashlib
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from headscope.core.errors import DataWarning, InputError, require_package
from headscope.data.tagging.linear_model import load_english
from headscope.data.tokenizing.words import Span, split_words

Item = str | tuple[str, ...]
"""A text to split into words, or its words."""

TAGGER_FILES = ("bundled/english_tagger.npz", "tokenizing/words.py", "tagging/linear_model.py", "tagging/features.py")
"""The files that determine a tag; when one changes, cached tags are not used again."""

BUILT_IN = "   (or use tagger='english', which is built in)"
UNIVERSAL = {"": "X", "SPACE": "X", "EOL": "X", "CONJ": "CCONJ"}
"""Universal tags for the tags that only spaCy has."""


@dataclass(frozen=True)
class Tags:
    """The universal part of speech of every word, and the spans of the words if the text was split."""

    tags: tuple[str, ...]
    spans: tuple[Span, ...] | None = None


class Tagger(ABC):
    """Tags words. `name` identifies everything that can change a tag; tags are cached by it."""

    name: str

    @abstractmethod
    def __call__(self, items: Sequence[Item]) -> list[Tags]:
        """Return the tags of every item."""


class EnglishTagger(Tagger):
    """Splits words by rules, and tags them by the bundled linear model."""

    def __init__(self) -> None:
        self.name = f"english {_version()}"

    def __call__(self, items: Sequence[Item]) -> list[Tags]:
        """Split the texts, and tag all words."""
        model, tagged = load_english(), []
        for item in items:
            spans = tuple(split_words(item)) if isinstance(item, str) else None
            words = item if isinstance(item, tuple) else words_at(item, spans or ())
            tagged.append(Tags(tuple(model.tag(words)), spans))
        return tagged


class SpacyTagger(Tagger):
    """Splits and tags words by a spaCy pipeline; its other components are not run."""

    def __init__(self, model: str) -> None:
        self._spacy = require_package("spacy", "spacy", f"tagger='spacy:{model}'", BUILT_IN)
        try:
            self._pipeline = self._spacy.load(model, exclude=["ner", "parser", "lemmatizer"])
        except OSError as error:
            raise InputError(
                f"There is no spaCy pipeline '{model}'. Install it with: python -m spacy download {model}{BUILT_IN}"
            ) from error
        self.name = f"spacy {self._spacy.__version__} {model} {self._pipeline.meta['version']}"

    def __call__(self, items: Sequence[Item]) -> list[Tags]:
        """Tag texts and words; words are not split again."""
        make_document, vocab = self._spacy.tokens.Doc, self._pipeline.vocab
        inputs = [item if isinstance(item, str) else make_document(vocab, words=list(item)) for item in items]
        return [self._tags(document, item) for document, item in zip(self._pipeline.pipe(inputs), items, strict=True)]

    def _tags(self, document: Any, item: Item) -> Tags:
        words = [token for token in document if not (isinstance(item, str) and token.is_space)]
        if words and not any(token.pos_ for token in words):
            raise InputError(
                f"The spaCy pipeline '{self._pipeline.meta['name']}' gives no parts of speech. Use one that does, such "
                "as en_core_web_sm."
            )
        spans = tuple((token.idx, token.idx + len(token.text)) for token in words) if isinstance(item, str) else None
        return Tags(tuple(UNIVERSAL.get(token.pos_, token.pos_) for token in words), spans)


def words_at(text: str, spans: Sequence[Span]) -> tuple[str, ...]:
    """Return the words of a text at these spans.

    >>> words_at("It rained.", [(0, 2), (3, 9), (9, 10)])
    ('It', 'rained', '.')
    """
    return tuple(text[start:end] for start, end in spans)


def warn_non_latin(items: Sequence[Item]) -> None:
    """Warn if most letters are not Latin; other languages in Latin script are not detected."""
    text = " ".join(item if isinstance(item, str) else " ".join(item) for item in items)
    letters, latin = len(_LETTER.findall(text)), len(_LATIN.findall(text))
    if latin < letters / 2:
        warnings.warn(
            f"{letters - latin} of {letters} letters are not Latin, but the built-in tagger is for English only: its "
            "tags will be wrong. Give the examples a column 'tags', or use tagger='spacy:MODEL' with a model for "
            "their language.",
            DataWarning,
            stacklevel=3,
        )


@cache
def _version() -> str:
    digest = hashlib.sha256()
    for name in TAGGER_FILES:
        digest.update((files("headscope.data") / name).read_bytes())
    return digest.hexdigest()[:16]


_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-zª-ɏḀ-ỿ]")  # up to Latin Extended-B, and Latin Extended Additional
