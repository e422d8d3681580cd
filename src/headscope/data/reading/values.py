"""What the values of one row are worth: texts, words, choices, labels, ids."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headscope.core.reader import Columns, Unreadable

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
PER_WORD = ("tags", "relations", "heads", "lemmas", "features")
"""Columns with one value for each word."""


def text_in(values: Mapping[str, Any], name: str, what: str) -> str:
    """A text that holds something."""
    found = values[name]
    if not isinstance(found, str):
        raise Unreadable(f"the {what} (column '{name}') is {type_name(found)}, where a text is expected")
    return _whole(found, f"the {what} (column '{name}')")


def words_in(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Words from a list, or from a text with spaces between them."""
    found = values[name]
    if isinstance(found, str):
        found = found.split()
    if not isinstance(found, list | tuple):
        raise Unreadable(f"the words (column '{name}') are {type_name(found)}, where a list of words is expected")
    return _texts(found, "word", f"the words (column '{name}')", least=1)


def choices_in(values: Mapping[str, Any], names: str | tuple[str, ...]) -> tuple[str, ...]:
    """The texts to choose from: a column with a list, or several columns."""
    if isinstance(names, str):
        found, where = values[names], f"the choices (column '{names}')"
    else:
        found, where = [values[name] for name in names], f"the choices (columns {', '.join(names)})"
    if not isinstance(found, list | tuple):
        raise Unreadable(f"{where} are {type_name(found)}, where a list of texts is expected")
    return _texts(found, "choice", where, least=2)


def label_in(value: Any, name: str, order: Sequence[str] | None) -> int | float | str | None:
    """A number, a name, or None for null; with a known order of names, a number."""
    if value is None:
        return None
    if isinstance(value, str) and not value.strip():
        raise Unreadable(f"the label (column '{name}') is empty")
    number = _number(value)
    if order is not None:
        if value in order:
            return order.index(value)
        if isinstance(number, int) and 0 <= number < len(order):
            return number
        raise Unreadable(f"the label (column '{name}') is {value!r}, which is not one of {', '.join(order)}")
    if number is not None and not math.isfinite(number):
        raise Unreadable(f"the label (column '{name}') is {value!r}, which is no finite number")
    if number is None and not isinstance(value, str):
        raise Unreadable(f"the label (column '{name}') is {type_name(value)}, where a number or a name is expected")
    return value if number is None else number


def id_in(values: Mapping[str, Any], name: str) -> str:
    """An id as text."""
    found = values[name]
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise Unreadable(f"the id (column '{name}') is {type_name(found)}, where a text or a whole number is expected")
    return _whole(str(found), f"the id (column '{name}')")


def rest_of(values: Mapping[str, Any], columns: Columns, words: tuple[str, ...] | None) -> dict[str, Any]:
    """Every column that is nothing else, lists made tuples; those with a value for each word must have all of them."""
    used = columns.used
    rest = {name: _frozen(value) for name, value in values.items() if name not in used}
    for name in PER_WORD if words is not None and columns.pair is None else ():
        if isinstance(found := rest.get(name), str):
            rest[name] = found = tuple(found.split())
        if isinstance(found, tuple) and len(found) != len(words or ()):
            raise Unreadable(f"there are {len(found)} {name} for {len(words or ())} words")
    return rest


def type_name(value: Any) -> str:
    """What a value is, in words.

    >>> type_name(3.5), type_name(None), type_name([1])
    ('the number 3.5', 'missing', 'a list')
    """
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}"
    known = {"list": "a list", "tuple": "a list", "dict": "an object"}
    return known.get(type(value).__name__, f"a {type(value).__name__}")


def _texts(found: Sequence[Any], what: str, where: str, least: int) -> tuple[str, ...]:
    if len(found) < least:
        raise Unreadable(f"{where} are {len(found)}, where at least {least} {'is' if least == 1 else 'are'} expected")
    for place, each in enumerate(found):
        if not isinstance(each, str):
            raise Unreadable(f"{what} {place} of {where} is {type_name(each)}, where a text is expected")
        _whole(each, f"{what} {place} of {where}")
    return tuple(found)


def _whole(text: str, where: str) -> str:
    """A text with something in it and no half characters."""
    if not text.strip():
        raise Unreadable(f"{where} is empty")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = ord(text[error.start])
            raise Unreadable(f"{where} holds U+{half:04X}, half of a surrogate pair and no character") from None
    return text


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        if not NUMBER.fullmatch(value):
            return None
        value = float(value) if set(value.lower()) & set(".e") else int(value)
    if not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
