"""Lenses, one class per file; each can be imported from here: `from headscope.lenses import Effective`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["lenses"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["lenses"].class_names()
