"""Add the parts of speech of their words to examples."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import numpy as np

from headscope.core.cache import cache_folder
from headscope.core.checksum import seal_zip
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.npz import pack_arrays, unpack_arrays
from headscope.data.tagging.tagger import EnglishTagger, Item, SpacyTagger, Tagger, Tags, warn_non_latin, words_at

MINIMUM = 20_000
"""Data with fewer characters than this are not cached."""


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


def tag_cached(items: Sequence[Item], tagger: Tagger) -> list[Tags]:
    """Return the tags of these items, from the cache if it has them."""
    size = sum(len(item) if isinstance(item, str) else sum(map(len, item)) for item in items)
    path = cache_path(items, tagger.name) if size >= MINIMUM else None
    if path is None:
        return tagger(items)
    tags = _read(path, items)
    if tags is None:
        tags = tagger(items)
        _write(path, tags)
    return tags


def cache_path(items: Sequence[Item], name: str) -> Path | None:
    """Return the file for these items and this tagger, or None if there is no cache folder."""
    digest = hashlib.sha256(name.encode())
    for item in items:
        words = [item] if isinstance(item, str) else ["", *item]
        digest.update("\x00".join(words).encode(errors="surrogatepass") + b"\x01")
    folder = cache_folder()
    return None if folder is None else folder / "tags" / f"{digest.hexdigest()[:32]}.npz"


def _write(path: Path, items: Sequence[Tags]) -> None:
    names = sorted({tag for item in items for tag in item.tags})
    index = {tag: number for number, tag in enumerate(names)}
    arrays: dict[str, Any] = {
        "names": np.array(names, dtype=np.str_),
        "counts": np.array([len(item.tags) for item in items], dtype=np.int64),
        "tags": np.array([index[tag] for item in items for tag in item.tags], dtype=np.uint8),
        "split": np.array([item.spans is not None for item in items], dtype=np.bool_),
        "spans": np.array([span for item in items for span in item.spans or ()], dtype=np.int32).reshape(-1, 2),
    }
    partial = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(seal_zip(pack_arrays(arrays, compress=True)))
        partial.replace(path)
    except OSError:  # the disk is full or the folder not writable: go on without a cache
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _read(path: Path, items: Sequence[Item]) -> list[Tags] | None:
    """Return the tags of a file, or None if it is missing or damaged."""
    try:
        data = unpack_arrays(path.read_bytes())
        names, counts, tags, split, spans = (data[key] for key in ("names", "counts", "tags", "split", "spans"))
        if len(counts) != len(items) or counts.sum() != len(tags) or counts[split].sum() != len(spans):
            return None
        tag, span = iter(names[tags].tolist()), map(tuple, spans.tolist())
        sizes = zip(counts.tolist(), split.tolist(), strict=True)
        return [Tags(tuple(islice(tag, n)), tuple(islice(span, n)) if has_spans else None) for n, has_spans in sizes]
    except (OSError, ValueError, KeyError, IndexError):
        return None
