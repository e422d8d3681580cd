"""Parse the values of one row: texts, words, choices, labels and ids."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headscope.core.prose import join_words
from headscope.core.reader import Columns, Unreadable

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
MAX_LABEL = 2**63 - 1
MAX_DIGITS = 100
"""Longer numbers are read as floats: Python refuses to read whole numbers of more than 4,300 digits."""

PER_WORD = ("tags", "relations", "heads", "lemmas", "features")
"""Columns with one value for each word."""


def parse_text(values: Mapping[str, Any], name: str, field: str) -> str:
    """Return a text that is not empty."""
    value = values[name]
    if not isinstance(value, str):
        raise Unreadable(f"the {field} (column '{name}') is {type_name(value)}, but a text is expected")
    return _check_text(value, f"the {field} (column '{name}')")


def parse_words(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return words from a list, or from a text with spaces between them."""
    words = values[name].split() if isinstance(values[name], str) else values[name]
    if not isinstance(words, list | tuple):
        raise Unreadable(f"the words (column '{name}') are {type_name(words)}, but a list of words is expected")
    return _check_texts(words, "word", f"the words (column '{name}')", minimum=1)


def parse_choices(values: Mapping[str, Any], names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts to choose from: one column with a list, or several columns."""
    if isinstance(names, str):
        texts, where = values[names], f"the choices (column '{names}')"
    else:
        texts, where = [values[name] for name in names], f"the choices (columns {join_words(names)})"
    if not isinstance(texts, list | tuple):
        raise Unreadable(f"{where} are {type_name(texts)}, but a list of texts is expected")
    return _check_texts(texts, "choice", where, minimum=2)


def parse_label(value: Any, name: str, classes: Sequence[str] | None) -> int | float | str | None:
    """Return a label as a number, a class name, or None where it is null or empty; of known classes their index."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    where = f"the label (column '{name}')"
    number = _parse_number(value)
    if classes is not None:
        if value in classes:
            return classes.index(value)
        if isinstance(number, int) and 0 <= number < len(classes):
            return number
        raise Unreadable(f"{where} is {value!r}, but {join_words(classes, 'or')} is expected")
    endless = isinstance(value, str) and len(value) > MAX_DIGITS and number in (math.inf, -math.inf)
    if endless or (isinstance(number, int) and abs(number) > MAX_LABEL):
        raise Unreadable(
            f"{where} is {_abbreviate(value)}, but numbers up to {MAX_LABEL} are expected; put a letter before a name"
        )
    if number is not None and not math.isfinite(number):
        raise Unreadable(f"{where} is {value!r}, which is not finite")
    if number is None and not isinstance(value, str):
        raise Unreadable(f"{where} is {type_name(value)}, but a number or a name is expected")
    return value if number is None else number


def parse_id(values: Mapping[str, Any], name: str) -> str:
    """Return an id as text."""
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unreadable(f"the id (column '{name}') is {type_name(value)}, but a text or an integer is expected")
    return _check_text(str(value), f"the id (column '{name}')")


def parse_rest(values: Mapping[str, Any], columns: Columns, words: tuple[str, ...] | None) -> dict[str, Any]:
    """Return all columns that are not used otherwise, with lists as tuples; check the length of those of PER_WORD."""
    rest = {name: _to_tuple(value) for name, value in values.items() if name not in columns.used}
    for name in PER_WORD if words is not None and columns.pair is None else ():
        if isinstance(value := rest.get(name), str):
            rest[name] = value = tuple(value.split())
        if isinstance(value, tuple) and len(value) != len(words or ()):
            raise Unreadable(f"there are {len(value)} {name} for {len(words or ())} words")
    return rest


def type_name(value: Any) -> str:
    """Return the type of a value in words, with its value if it is short.

    >>> type_name(3.5), type_name(None), type_name([1])
    ('the number 3.5', 'missing', 'a list')
    """
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}"
    words = {"list": "a list", "tuple": "a list", "dict": "an object"}
    return words.get(type(value).__name__, f"a {type(value).__name__}")


def _check_texts(texts: Sequence[Any], item: str, where: str, minimum: int) -> tuple[str, ...]:
    if len(texts) < minimum:
        raise Unreadable(f"{where} are {len(texts)}, but at least {minimum} must be given")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise Unreadable(f"{item} {index} of {where} is {type_name(text)}, but a text is expected")
        _check_text(text, f"{item} {index} of {where}")
    return tuple(texts)


def _check_text(text: str, where: str) -> str:
    """Refuse empty texts and lone surrogates."""
    if not text.strip():
        raise Unreadable(f"{where} is empty")
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"{where} holds U+{ord(text[error.start]):04X}, a lone surrogate") from None
    return text


def _parse_number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        if not NUMBER.fullmatch(value):
            return None
        exact = len(value) <= MAX_DIGITS and not set(value.lower()) & set(".e")
        value = int(value) if exact else float(value)
    if not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _abbreviate(value: Any) -> str:
    try:
        text = str(value).strip()
    except ValueError:  # more than 4,300 digits
        return "with thousands of digits"
    return text if len(text) <= 24 else f"{text[:12]}… ({len(text):,} digits)"


def _to_tuple(value: Any) -> Any:
    return tuple(map(_to_tuple, value)) if isinstance(value, list) else value
