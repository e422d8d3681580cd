"""Figures, one class per file; each can be imported from here: `from headscope.figures import Matrix`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["figures"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["figures"].class_names()
