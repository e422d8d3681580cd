"""Choose the columns for the text, the pair, the label, the words and the id."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headscope.core.errors import suggest_name
from headscope.core.prose import join_words
from headscope.core.reader import Columns, Unreadable
from headscope.data.reading.values import type_name

TEXT_PAIRS = (
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
"""Common names of text and pair; the first that both exist are used, before any of SINGLE_TEXTS."""

SINGLE_TEXTS = ("text", "sentence", "question", "content", "document")
WORDS = ("words", "tokens")
LABELS = ("label", "gold_label")
IDS = ("id", "idx", "index", "sent_id")


def choose_columns(requested: Columns, of_format: Columns, values: Mapping[str, Any]) -> Columns:
    """Return the requested columns, otherwise those that the format knows, otherwise those with common names."""
    values = {**values, **{name: None for name in requested.used if is_nested(name, values)}}
    by_number = requested.id == "row" and "row" not in values
    requested = replace(requested, id=None) if by_number else requested
    for name in requested.used:
        if name not in values:
            raise Unreadable(describe_missing(name, values))
    free = {name.lower(): name for name in reversed(list(values)) if name not in requested.used}
    if requested.text == "":
        if not (requested.choices or of_format.choices or "choices" in values):
            raise Unreadable("text='' reads choices without a text before them, but there are no choices. Name them")
        texts = replace(requested, text=None)
    elif requested.text or requested.words:
        texts = requested
    else:
        texts = of_format if of_format.text or of_format.words else _guess_texts(free, values)
        texts = replace(texts, pair=requested.pair or texts.pair)
    return Columns(
        text=texts.text,
        pair=texts.pair,
        words=texts.words,
        label=requested.label or of_format.label or _first(free, LABELS),
        id=None if by_number else requested.id or of_format.id or _first(free, IDS),
        choices=requested.choices or of_format.choices,
        labels=of_format.labels,
    )


def is_nested(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a name such as data.review.text is that of a field in a column, and not of a column."""
    return name not in values and "." in name and name.partition(".")[0] in values


def read_nested(name: str, values: Mapping[str, Any]) -> Any:
    """Return a field of an object in a column; a column may have dots in its own name, too.

    >>> read_nested("data.review.text", {"data": {"review": {"text": "Good."}}})
    'Good.'
    """
    if name in values:
        return values[name]
    first, _, rest = name.partition(".")
    if not rest or first not in values:
        raise Unreadable(describe_missing(name, values))
    if not isinstance(values[first], Mapping):
        raise Unreadable(f"'{rest}' should be a field of '{first}', but that is {type_name(values[first])}")
    return read_nested(rest, values[first])


def describe_difference(first: Columns, columns: Columns) -> str:
    """Say how the columns of a row differ from those of the first row."""
    for field in ("text", "pair", "label", "words", "id"):
        before, name = getattr(first, field), getattr(columns, field)
        if before != name:
            was = f"is '{before}'" if before else "is missing"
            return f"its {field} would be the column '{name}', but in the first row it {was}; name it: {field}='{name}'"
    return "its columns differ from those of the first row"


def describe_missing(name: str, values: Mapping[str, Any]) -> str:
    """Say that a column is missing, with the closest name and all names."""
    return f"there is no column '{name}'. {suggest_name(name, values)}Columns: {join_words(values)}"


def _guess_texts(free: Mapping[str, str], values: Mapping[str, Any]) -> Columns:
    lists = {name for name in free if isinstance(values[free[name]], list | tuple)}
    words = next((free[name] for name in WORDS if name in lists), None)
    for text, pair in TEXT_PAIRS:
        if text in free and pair in free:
            return Columns(text=free[text], pair=free[pair], words=words)
    if single := _first(free, SINGLE_TEXTS):
        return Columns(text=single, words=words)
    if words := words or _first(free, WORDS):
        return Columns(words=words)
    raise Unreadable(
        f"no column has a common name of a text ({', '.join((*SINGLE_TEXTS, *WORDS))}, sentence1, premise, …). "
        f"Columns: {join_words(values)}. Name one: hs.read(…, text='{next(iter(values), 'name')}'), in the shell --text"
    )


def _first(free: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((free[name] for name in names if name in free), None)
