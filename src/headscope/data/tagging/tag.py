"""Examples with the parts of speech of their words."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tagging.cache import kept
from headscope.data.tagging.english import EnglishTags, warn_of_other_scripts
from headscope.data.tagging.spacy_pipeline import SpacyTags
from headscope.data.tagging.tagger import Item, Tagged, Tagging, words_at


def tag_examples(examples: Sequence[Example], tagger: str = "auto") -> list[Example]:
    """The same examples with a column `tags`: the universal part of speech of every word, the pair's after the text's.

    Words are those of `words` or of the column `spans` where an example has them; otherwise the text is split, and
    `spans` and `pair_spans` say where each word stands. Examples that have tags keep them: those are the gold ones.
    `tagger` is "english" (built in, and what "auto" means), "spacy:MODEL", or "gold", which takes no other tags than
    those of the data. Tags of larger sets are kept on disk.

    >>> tagged([Example("0", "It rained.")])[0].columns["tags"]
    ('PRON', 'VERB', 'PUNCT')
    """
    tagging = _tagging(tagger)
    bare = [each for each in examples if "tags" not in each.columns]
    if not bare:
        return list(examples)
    if tagging is None:
        raise InputError(
            f"tagger='gold' takes tags from the data, but {len(bare)} of {len(examples)} examples have none, the first "
            f"is '{bare[0].id}'. Give them a column 'tags', or use tagger='auto'."
        )
    items = [item for each in bare for item in _items(each)]
    if isinstance(tagging, EnglishTags):
        warn_of_other_scripts(items)
    found = iter(kept(items, tagging))
    return [each if "tags" in each.columns else _with(each, found) for each in examples]


def _tagging(tagger: str) -> Tagging | None:
    kind, _, model = tagger.partition(":")
    if tagger == "gold":
        return None
    if tagger in ("auto", "english"):
        return EnglishTags()
    if kind == "spacy":
        return SpacyTags(model or "en_core_web_sm")
    raise InputError(
        f"No tagger is called '{tagger}'. Use 'auto' or 'english' (built in), 'spacy:MODEL' such as "
        "'spacy:en_core_web_sm', or 'gold' for the tags of the data."
    )


def _items(example: Example) -> list[Item]:
    """What is to be tagged: the text, or its words where they are known, and the same of the pair."""
    if example.words is not None:
        return [tuple(example.words)]
    columns = example.columns
    items: list[Item] = [words_at(example.text, columns["spans"]) if "spans" in columns else example.text]
    if example.pair is not None:
        items.append(words_at(example.pair, columns["pair_spans"]) if "pair_spans" in columns else example.pair)
    return items


def _with(example: Example, found: Iterator[Tagged]) -> Example:
    """An example with what was found for its text and its pair."""
    parts = [next(found) for _ in _items(example)]
    added: dict[str, Any] = {"tags": tuple(tag for part in parts for tag in part.tags)}
    for name, part in zip(("spans", "pair_spans"), parts, strict=False):
        added |= {} if part.spans is None else {name: part.spans}
    return replace(example, columns=MappingProxyType({**example.columns, **added}))
