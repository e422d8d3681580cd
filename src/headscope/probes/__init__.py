"""Probes of attention, one class per file: `from headscope.probes import Dependency`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["probes"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["probes"].class_names()
