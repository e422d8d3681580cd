"""Kinds of results, one class per file; each can be imported from here: `from headscope.kinds import Ablation`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["kinds"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["kinds"].class_names()
