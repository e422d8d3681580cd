"""Provenance of a run as labelled facts, the most important first."""

from collections.abc import Mapping
from typing import Any

FIRST_FACTS = {
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
"""Facts that are shown first, with their labels."""

Facts = list[tuple[str, str]]


def describe_run(run: Mapping[str, Any]) -> tuple[Facts, Facts]:
    """Return the facts shown first, and the rest, without empty values.

    >>> describe_run({"n": 1200, "model": "bert", "plan": "1a", "limit": None})
    ([('model', 'bert'), ('n', '1,200')], [('plan', '1a')])
    """
    facts = {str(key): value for key, value in run.items() if key != "name" and value not in (None, [], {}, "", ())}
    nested = {key: value for key, value in facts.items() if key in ("a", "b", "runs") and isinstance(value, Mapping)}
    first = [(label, format_fact(facts[key])) for key, label in FIRST_FACTS.items() if key in facts]
    others = [key for key in sorted(facts) if key not in FIRST_FACTS and key not in nested]
    rest = [(key.replace("_", " "), format_fact(facts[key])) for key in others]
    for key, value in nested.items():
        rest += _describe_nested(key, value)
    return first, rest


def format_fact(value: Any) -> str:
    """Return a value as text: lists with commas, mappings with colons."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {format_fact(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(format_fact, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _describe_nested(key: str, run: Mapping[str, Any]) -> Facts:
    """Return the facts of a run within this one, such as a side of a comparison."""
    if key == "runs":
        return [(f"run {name}", format_fact(value)) for name, value in run.items()]
    first, rest = describe_run(run)
    return [(f"{key}: {label}", text) for label, text in (*first, *rest)]
