"""What was run, as a report says it: the facts that a reader asks for first, then all others."""

from collections.abc import Mapping
from typing import Any

FIRST = {
    "command": "command",
    "options": "options",
    "model": "model",
    "weights_hash": "weights",
    "data": "data",
    "n": "n",
    "lenses": "lenses",
    "lens": "lenses",
    "statistics": "statistics",
    "task": "task",
    "edits": "edits",
    "max_length": "longest input",
    "units": "units",
    "device": "device",
    "dtype": "numbers",
    "seed": "seed",
    "paired": "paired",
    "correction": "correction",
    "version": "headscope",
}
"""Facts that are shown first, and what they are called."""

Facts = list[tuple[str, str]]


def facts(run: Mapping[str, Any]) -> tuple[Facts, Facts]:
    """The facts shown first, and the rest; those that say nothing (none, an empty list) are left out.

    >>> facts({"n": 1200, "model": "bert", "plan": "1a", "limit": None})
    ([('model', 'bert'), ('n', '1,200')], [('plan', '1a')])
    """
    told = {str(key): each for key, each in run.items() if key != "name" and each not in (None, [], {}, "", ())}
    parts = {key: each for key, each in told.items() if key in ("a", "b", "runs") and isinstance(each, Mapping)}
    first = [(FIRST[key], worded(told[key])) for key in FIRST if key in told]
    rest = [(key.replace("_", " "), worded(told[key])) for key in sorted(told) if key not in FIRST and key not in parts]
    for key, each in parts.items():
        rest += _within(key, each)
    return first, rest


def worded(value: Any) -> str:
    """A fact in words: lists with commas, pairs with colons."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {worded(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(worded, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _within(key: str, run: Mapping[str, Any]) -> Facts:
    """The facts of a run that went into this one: of either side of a comparison, say."""
    if key == "runs":
        return [(f"run {name}", worded(each)) for name, each in run.items()]
    first, rest = facts(run)
    return [(f"{key}: {name}", each) for name, each in (*first, *rest)]
