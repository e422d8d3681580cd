"""Examples as JSON Lines."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headscope.core.example import Example

FIELDS = ("id", "text", "pair", "words", "label")


def is_examples(what: Any) -> bool:
    """Whether this is a list of examples, and not an empty one."""
    return isinstance(what, list | tuple) and bool(what) and all(isinstance(item, Example) for item in what)


def write_examples(examples: Sequence[Example], path: Path) -> None:
    """Write one object a line: the fields of an example that any of them has, and its further columns."""
    names = [name for name in FIELDS if any(getattr(example, name) is not None for example in examples)]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for example in examples:
            row = {name: getattr(example, name) for name in names} | dict(example.columns)
            file.write(json.dumps(row, ensure_ascii=False, default=_to_plain) + "\n")


def _to_plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else value.tolist() if hasattr(value, "tolist") else str(value)
