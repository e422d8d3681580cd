"""Add the parts of speech of their words to examples."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tagging.cache import tag_cached
from headscope.data.tagging.tagger import EnglishTagger, Item, SpacyTagger, Tagger, Tags, warn_non_latin, words_at


def tag_examples(examples: Sequence[Example], tagger: str = "auto") -> list[Example]:
    """Return the examples with a column `tags`: the universal part of speech of each word.

    The tags of the pair follow those of the text. Words are those of `words` or of the column `spans`, if the example
    has one; otherwise the text is split, and `spans` and `pair_spans` hold the start and end of each word. Existing
    tags are kept as gold tags. `tagger` is "english" (built in; "auto" is the same), "spacy:MODEL", or "gold", which
    accepts only tags of the data. Tags of larger data are cached on disk.

    >>> tag_examples([Example("0", "It rained.")])[0].columns["tags"]
    ('PRON', 'VERB', 'PUNCT')
    """
    make_tags = _make_tagger(tagger)
    untagged = [example for example in examples if "tags" not in example.columns]
    if not untagged:
        return list(examples)
    if make_tags is None:
        raise InputError(
            f"tagger='gold' needs tags in the data, but {len(untagged)} of {len(examples)} examples have none, the "
            f"first is '{untagged[0].id}'. Give them a column 'tags', or use tagger='auto'."
        )
    items = [item for example in untagged for item in _items(example)]
    if isinstance(make_tags, EnglishTagger):
        warn_non_latin(items)
    tags = iter(tag_cached(items, make_tags))
    return [example if "tags" in example.columns else _add_tags(example, tags) for example in examples]


def _make_tagger(tagger: str) -> Tagger | None:
    package, _, model = tagger.partition(":")
    if tagger == "gold":
        return None
    if tagger in ("auto", "english"):
        return EnglishTagger()
    if package == "spacy":
        return SpacyTagger(model or "en_core_web_sm")
    raise InputError(
        f"No tagger is called '{tagger}'. Use 'auto' or 'english' (built in), 'spacy:MODEL' such as "
        "'spacy:en_core_web_sm', or 'gold' for the tags of the data."
    )


def _items(example: Example) -> list[Item]:
    """Return what is to be tagged: the text and the pair, each as its words where these are known."""
    if example.words is not None:
        return [tuple(example.words)]
    texts = {"spans": example.text, "pair_spans": example.pair}
    return [
        words_at(text, example.columns[name]) if name in example.columns else text
        for name, text in texts.items()
        if text is not None
    ]


def _add_tags(example: Example, tags: Iterator[Tags]) -> Example:
    tagged_texts = [next(tags) for _ in _items(example)]
    added: dict[str, Any] = {"tags": tuple(tag for tagged in tagged_texts for tag in tagged.tags)}
    for name, tagged in zip(("spans", "pair_spans"), tagged_texts, strict=False):
        added |= {} if tagged.spans is None else {name: tagged.spans}
    return replace(example, columns=MappingProxyType({**example.columns, **added}))
