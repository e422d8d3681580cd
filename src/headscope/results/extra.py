"""Packages that only some files need."""

from importlib import import_module
from typing import Any

from headscope.core.errors import MissingExtra


def needed(package: str, extra: str, ending: str) -> Any:
    """A package that headscope can do without, or the line that installs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"A {ending} file needs the package {package.partition('.')[0]}, which is not installed. "
            f"Install it with: pip install 'headscope[{extra}]'   (or use .nc, which needs nothing more)"
        ) from error
