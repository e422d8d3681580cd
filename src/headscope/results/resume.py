"""Whether a run may resume what an earlier run left: the facts of both are compared by name."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError

WIDTH = 60  # characters shown of a value


class Digest(str):
    """A fact that is the hash of something large. Errors name it without its value."""

    __slots__ = ()


def to_plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as JSON stores them, so that they equal those read from a file."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(facts), default=str))
    return plain


def find_difference(first: Mapping[str, Any], second: Mapping[str, Any], ignore: Collection[str] = ()) -> str | None:
    """Return the name of the first fact that differs; None where all are equal. A missing fact is None."""
    names = (name for name in {**second, **first} if name not in ignore)
    return next((name for name in names if first.get(name) != second.get(name)), None)


def check_resumable(
    path: Path, stored: Mapping[str, Any], current: Mapping[str, Any], *, ignore: Collection[str] = (), remedy: str
) -> None:
    """Raise InputError if the run stored at `path` had other facts than the current one.

    `remedy` says what to do, such as "Measure as before, or give another path."
    """
    plain = to_plain(current)
    name = find_difference(stored, plain, ignore)
    if name is None:
        return
    if isinstance(current.get(name), Digest):
        raise InputError(f"{path} cannot be resumed: it was started with other {name}. {remedy}")
    raise InputError(
        f"{path} cannot be resumed: its {name} is {shorten(stored.get(name))}, but this run's is "
        f"{shorten(plain.get(name))}. {remedy}"
    )


def shorten(value: Any) -> str:
    """Return the repr of a value, cut to `WIDTH` characters."""
    text = repr(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
