"""Whether a run may resume what an earlier run left: the facts of both are compared by name."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError

WIDTH = 60  # characters shown of a value


@dataclass(frozen=True)
class Difference:
    """A fact that two runs do not share."""

    name: str  # of a fact within another with a dot: config.hidden_act
    first: Any
    second: Any

    @property
    def label(self) -> str:
        """The name in words; that of a hash is what was hashed."""
        return self.name.removesuffix("_hash").replace("_", " ")

    @property
    def hashed(self) -> bool:
        """Whether both values are hashes, which say nothing to a reader."""
        return all(value is None or is_hash(value) for value in (self.first, self.second))

    def describe(self) -> str:
        """Return how two finished runs differ.

        >>> Difference("max_length", 64, 128).describe()
        'their max_length differs, 64 and 128'
        """
        if self.hashed:
            return f"they differ in their {self.label}"
        return f"their {self.name} differs, {shorten(self.first)} and {shorten(self.second)}"

    def reason_not_resumed(self) -> str:
        """Return why the second run cannot resume the first.

        >>> Difference("weights_hash", "53aa51172d142c89", "77bb51172d142c89").reason_not_resumed()
        'the weights changed since it was started'
        """
        if self.hashed:
            return f"the {self.label} changed since it was started"
        return f"its {self.name} is {shorten(self.first)}, but this run's is {shorten(self.second)}"


def to_plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as JSON stores them, so that they equal those read from a file."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(facts), default=str))
    return plain


def find_difference(
    first: Mapping[str, Any], second: Mapping[str, Any], ignore: Collection[str] = ()
) -> Difference | None:
    """Return the first fact that differs; None where all are equal. A missing fact is None.

    Of facts within a fact, such as a model's config, those that both have are compared: another version of a library
    may have more of them.
    """
    for name in {**second, **first}:
        ours, theirs = first.get(name), second.get(name)
        if name in ignore or ours == theirs:
            continue
        if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
            return Difference(name, ours, theirs)
        inner = find_difference(*({key: fact[key] for key in ours if key in theirs} for fact in (ours, theirs)))
        if inner is not None:
            return Difference(f"{name}.{inner.name}", inner.first, inner.second)
    return None


def check_resumable(
    path: Path, stored: Mapping[str, Any], current: Mapping[str, Any], *, ignore: Collection[str] = (), remedy: str
) -> None:
    """Raise InputError if the run stored at `path` had other facts than the current one.

    `remedy` says what to do, such as "Measure as before, or give another path."
    """
    difference = find_difference(stored, to_plain(current), ignore)
    if difference is not None:
        raise InputError(f"{path} cannot be resumed: {difference.reason_not_resumed()}. {remedy}")


def is_hash(value: Any) -> bool:
    """Return whether a value is a hash, of at least 64 bits.

    >>> is_hash("53aa51172d142c89"), is_hash("bert-base")
    (True, False)
    """
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{16,64}", value) is not None


def shorten(value: Any) -> str:
    """Return the repr of a value, cut to `WIDTH` characters."""
    text = repr(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
