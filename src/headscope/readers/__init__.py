"""Readers, one class per file; each can be imported from here: `from headscope.readers import Jsonl`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["readers"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["readers"].class_names()
