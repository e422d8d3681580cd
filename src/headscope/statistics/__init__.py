"""Statistics, one class per file; each can be imported from here: `from headscope.statistics import Entropy`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["statistics"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["statistics"].class_names()
