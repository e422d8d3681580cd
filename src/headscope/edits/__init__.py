"""Edits, one class per file; each can be imported from here: `from headscope.edits import EffectiveAttention`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["edits"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["edits"].class_names()
