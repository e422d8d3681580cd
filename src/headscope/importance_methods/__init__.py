"""Methods for importances, one class per file: `from headscope.importance_methods import BlankOut`."""

from typing import Any

from headscope.core.catalog import catalogs


def __getattr__(name: str) -> Any:
    return catalogs["importance_methods"].find_class(name)


def __dir__() -> list[str]:
    return catalogs["importance_methods"].class_names()
