"""Which column is the text, the pair, the label, the words, the id."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from headscope.core.reader import Columns, Unreadable

TEXTS = (
    ("text", "pair"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("question", "sentence"),
    ("question", "context"),
    ("question", "passage"),
)
"""Names of texts and their seconds, the first that is there; a text may stand alone."""

ALONE = ("text", "sentence", "question", "content", "document")
WORDS = ("words", "tokens")
LABELS = ("label", "gold_label")
IDS = ("id", "idx", "index", "sent_id")


def choose(asked: Columns, known: Columns, values: Mapping[str, Any]) -> Columns:
    """The columns that were asked for, else those that the format knows, else those with well-known names."""
    by_number = asked.id == "row" and "row" not in values
    asked = replace(asked, id=None) if by_number else asked
    for name in asked.used:
        if name not in values:
            raise Unreadable(absent(name, values))
    said = {field: getattr(asked, field) or getattr(known, field) for field in ("label", "id", "choices")}
    free = {name.lower(): name for name in reversed(list(values)) if name not in asked.used}
    if asked.text or asked.words:
        texts = {"text": asked.text, "words": asked.words, "pair": asked.pair}
    else:
        source = known if known.text or known.words else _guessed(free, values)
        texts = {"text": source.text, "words": source.words, "pair": asked.pair or source.pair}
    label = said["label"] or _first(free, LABELS)
    row_id = None if by_number else said["id"] or _first(free, IDS)
    return Columns(**texts, label=label, id=row_id, choices=said["choices"], labels=known.labels)


def differs(first: Columns, here: Columns) -> str:
    """How the columns of a row are read differently from those of the first."""
    for field in ("text", "pair", "label", "words", "id"):
        then, now = getattr(first, field), getattr(here, field)
        if then != now:
            before = f"is '{then}'" if then else "is not there"
            return (
                f"its {field} would be the column '{now}', but in the first row it {before}; name it: {field}='{now}'"
            )
    return "its columns are read differently from those of the first row"


def absent(name: str, values: Mapping[str, Any]) -> str:
    """Say that a column is not there, with the nearest and all others."""
    near = get_close_matches(name, list(values), n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    return f"there is no column '{name}' ({guess}there are: {', '.join(values) or 'none'})"


def _guessed(free: Mapping[str, str], values: Mapping[str, Any]) -> Columns:
    words = next((free[name] for name in WORDS if _listed(values.get(free.get(name, "")))), None)
    for text, pair in TEXTS:
        if text in free and pair in free:
            return Columns(text=free[text], pair=free[pair], words=words)
    if alone := _first(free, ALONE):
        return Columns(text=alone, words=words)
    if words := words or _first(free, WORDS):
        return Columns(words=words)
    some = next(iter(values), "name")
    raise Unreadable(
        f"no column has a name that texts usually have ({', '.join((*ALONE, *WORDS))}, sentence1, premise, …). "
        f"There are: {', '.join(values) or 'none'}. Name one: text='{some}'"
    )


def _first(free: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((free[name] for name in names if name in free), None)


def _listed(value: Any) -> bool:
    return isinstance(value, list | tuple)
