"""Tags from a spaCy pipeline that the user has."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from headscope.core.errors import InputError, MissingExtra
from headscope.data.tagging.tagger import Item, Tagged, Tagging


class SpacyTags(Tagging):
    """Words and tags as a spaCy pipeline sees them; what it does beyond tags is left out."""

    def __init__(self, model: str) -> None:
        try:
            self._spacy = import_module("spacy")
        except ImportError as error:
            raise MissingExtra(
                f"tagger='spacy:{model}' needs spaCy, which is not installed. Run pip install 'headscope[spacy]', or "
                "use tagger='english', which is built in."
            ) from error
        try:
            self._pipeline = self._spacy.load(model, exclude=["ner", "parser", "lemmatizer"])
        except OSError as error:
            raise InputError(
                f"spaCy has no pipeline called '{model}' here. Run python -m spacy download {model}, or use "
                "tagger='english', which is built in."
            ) from error
        self.name = f"spacy {self._spacy.__version__} {model} {self._pipeline.meta['version']}"

    def __call__(self, items: Sequence[Item]) -> list[Tagged]:
        """Texts go through the whole pipeline, words through all but its tokenizer."""
        given = [item if isinstance(item, str) else self._document(item) for item in items]
        return [self._tags(document, item) for document, item in zip(self._pipeline.pipe(given), items, strict=True)]

    def _document(self, words: Sequence[str]) -> Any:
        return self._spacy.tokens.Doc(self._pipeline.vocab, words=list(words))

    def _tags(self, document: Any, item: Item) -> Tagged:
        words = [token for token in document if not (isinstance(item, str) and token.is_space)]
        if words and not any(token.pos_ for token in words):
            raise InputError(
                f"The spaCy pipeline '{self._pipeline.meta['name']}' gives no parts of speech. Use one that does, such "
                "as en_core_web_sm."
            )
        spans = tuple((token.idx, token.idx + len(token.text)) for token in words) if isinstance(item, str) else None
        return Tagged(tuple(_universal(token.pos_) for token in words), spans)


def _universal(tag: str) -> str:
    """spaCy has names of its own for what it could not tag, for white space among words, and for an old conjunction."""
    return {"": "X", "SPACE": "X", "EOL": "X", "CONJ": "CCONJ"}.get(tag, tag)
