"""Hashes of texts, files, labels and code, for the provenance of results."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from headscope.core.example import Example


def fingerprint(texts: Iterable[str]) -> str:
    """Return a short hash of these texts in this order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\x00")
    return digest.hexdigest()[:16]


def hash_configs(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts for a stamp, with a hash in place of a model's long config."""
    configs = {name: fact for name, fact in facts.items() if isinstance(fact, Mapping)}
    hashes = {f"{name}_hash": fingerprint([json.dumps(fact, sort_keys=True)]) for name, fact in configs.items()}
    return {name: fact for name, fact in facts.items() if name not in configs} | hashes


def hash_file(path: Path) -> str:
    """Return a short hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def fingerprint_columns(examples: Sequence[Example]) -> str | None:
    """Return a hash of the further columns; None without any."""
    return fingerprint_data(examples)["columns"]


def fingerprint_data(
    examples: Iterable[Example], advance: Callable[[int], object] = lambda _: None
) -> dict[str, str | None]:
    """Return hashes of examples ("data"), of their labels and of their further columns; None for what none has.

    They are gone through once; `advance` is told the number of examples.
    """
    digests = {name: hashlib.sha256() for name in ("data", "labels", "columns")}
    found = {"data"}
    for example in examples:
        for text in _describe_example(example, labels=False):
            digests["data"].update(text.encode() + b"\x00")
        digests["labels"].update(repr(example.label).encode() + b"\x00")
        digests["columns"].update(_describe_columns(example).encode() + b"\x00")
        found |= ({"labels"} if example.label is not None else set()) | ({"columns"} if example.columns else set())
        advance(1)
    return {name: digest.hexdigest()[:16] if name in found else None for name, digest in digests.items()}


def _describe_columns(example: Example) -> str:
    def to_plain(value: Any) -> Any:
        return dict(value) if isinstance(value, Mapping) else value.tolist() if hasattr(value, "tolist") else str(value)

    return json.dumps(dict(example.columns), sort_keys=True, ensure_ascii=False, default=to_plain)


_METHODS = ("__call__", "__post_init__")


def fingerprint_code(entry_class: type) -> str:
    """Return a hash of the methods and attributes that a class defines, whatever its comments and lines.

    >>> first, second = type("A", (), {"power": 2}), type("A", (), {"power": 3})
    >>> fingerprint_code(first) == fingerprint_code(second)
    False
    """

    def describe(value: Any) -> Iterator[str]:
        value = getattr(value, "fget", getattr(value, "__func__", value))  # a property or a class method
        code = value if isinstance(value, CodeType) else getattr(value, "__code__", None)
        if isinstance(value, set | frozenset):
            yield from sorted(map(repr, value))  # whose order differs from process to process
        elif code is None:
            yield "" if " at 0x" in repr(value) else repr(value)
        else:
            yield from (code.co_code.hex(), *code.co_names, repr(getattr(value, "__defaults__", None)))
            for constant in code.co_consts:
                yield from describe(constant)

    own = {name: value for name, value in vars(entry_class).items() if name[:2] != "__" or name in _METHODS}
    return fingerprint(text for name, value in sorted(own.items()) for text in (name, *describe(value)))


def fingerprint_examples(examples: Iterable[Example], *, labels: bool = False) -> str:
    """Return a hash of ids, texts, words and images, and of the tags or, with `labels`, of the labels and choices."""
    return fingerprint(text for example in examples for text in _describe_example(example, labels=labels))


def _describe_example(example: Example, *, labels: bool) -> Iterator[str]:
    yield from (example.id, example.text, example.pair or "", "\x01".join(example.words or ()))
    columns = example.columns
    yield from (columns["image"].digest,) if hasattr(columns.get("image"), "digest") else ()
    yield from (repr(example.label), *map(str, columns.get("choices", ()))) if labels else columns.get("tags", ())
