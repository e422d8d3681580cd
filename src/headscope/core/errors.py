"""Everything headscope raises on purpose.

    HeadscopeError
    ├── InputError        what was asked for cannot be done with what was given
    │   ├── UnknownName   no catalog entry of that name
    │   ├── LoadError     a model that cannot be loaded
    │   ├── NotCaptured   a lens asked a trace for something it does not hold
    │   └── MissingExtra  an optional package is not installed
    ├── CaptureError      a model whose attention cannot be captured
    └── OutputError       a file that cannot be written

Every text says what was asked, what was found, and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class HeadscopeError(Exception):
    """Any error that headscope raises on purpose."""


class InputError(HeadscopeError, ValueError):
    """What was asked for cannot be done with what was given."""


class UnknownName(InputError):  # noqa: N818  (the name says what is wrong)
    """No entry of that name."""


class LoadError(InputError):
    """A model that cannot be loaded."""


class NotCaptured(InputError):  # noqa: N818  (the name says what is wrong)
    """A lens asked a trace for something it does not hold."""


class MissingExtra(InputError):  # noqa: N818  (the name says what is wrong)
    """An optional package is not installed."""


class CaptureError(HeadscopeError):
    """A model whose attention cannot be captured."""


class OutputError(HeadscopeError):
    """A file that cannot be written."""


class DataWarning(UserWarning):
    """Something about the user's data or model that changes what the numbers mean."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> UnknownName:
    """Say that `name` is not one of `known`, with the nearest ones.

    >>> str(unknown_name("lens", "rolout", ["raw", "rollout"]))
    "No lens is called 'rolout'. Did you mean 'rollout'? Known: raw, rollout."
    """
    choices = sorted(known)
    near = get_close_matches(name, choices, n=1)
    guess = f" Did you mean '{near[0]}'?" if near else ""
    return UnknownName(f"No {what} is called '{name}'.{guess} Known: {', '.join(choices) or 'none'}.")


def require_package(package: str, extra: str, purpose: str, hint: str = "") -> Any:
    """Import an optional package, or raise MissingExtra with the command that installs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package {package.partition('.')[0]}, which is not installed. "
            f"Install it with: pip install 'headscope[{extra}]'{hint}"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python or torch raised this error for lack of memory."""
    texts = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(text in str(error) for text in texts)
