"""Families of models, one class per file; each can be imported from here: `from headscope.families import Bert`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["families"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["families"].class_names()
