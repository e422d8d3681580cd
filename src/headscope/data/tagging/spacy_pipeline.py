"""Tags from an installed spaCy pipeline."""

from collections.abc import Sequence
from typing import Any

from headscope.core.errors import InputError, require_package
from headscope.data.tagging.tagger import Item, Tagger, Tags

BUILT_IN = "   (or use tagger='english', which is built in)"
UNIVERSAL = {"": "X", "SPACE": "X", "EOL": "X", "CONJ": "CCONJ"}
"""Universal tags for the tags that only spaCy has."""


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
        inputs = [item if isinstance(item, str) else self._document(item) for item in items]
        return [self._tags(document, item) for document, item in zip(self._pipeline.pipe(inputs), items, strict=True)]

    def _document(self, words: Sequence[str]) -> Any:
        return self._spacy.tokens.Doc(self._pipeline.vocab, words=list(words))

    def _tags(self, document: Any, item: Item) -> Tags:
        words = [token for token in document if not (isinstance(item, str) and token.is_space)]
        if words and not any(token.pos_ for token in words):
            raise InputError(
                f"The spaCy pipeline '{self._pipeline.meta['name']}' gives no parts of speech. Use one that does, such "
                "as en_core_web_sm."
            )
        spans = tuple((token.idx, token.idx + len(token.text)) for token in words) if isinstance(item, str) else None
        return Tags(tuple(UNIVERSAL.get(token.pos_, token.pos_) for token in words), spans)
