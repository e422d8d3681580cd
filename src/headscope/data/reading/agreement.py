"""What the readers of subject-verb agreement share: the columns, the words before the verb, and its number."""

from typing import Any

from headscope.core.reader import Columns, Unreadable
from headscope.data.bundled.agreement import NUMBERS

SINGULAR_FORMS = {"is": "are", "was": "were", "has": "have", "does": "do"}
COLUMNS = Columns(words="words", label="number", labels={"number": NUMBERS})
"""The columns of every reader of this task; `words` are those before the verb."""


def find_number(right: str, wrong: str) -> str:
    """Return the number of the verb form `right`, where `wrong` is its other number.

    The singular is the form with the ending -s, which is the longer one; is, was, has and does are known.

    >>> find_number("passes", "pass"), find_number("are", "is"), find_number("try", "tries")
    ('singular', 'plural', 'plural')
    """
    for form, other, number in ((right, wrong, "singular"), (wrong, right, "plural")):
        low, high = form.lower(), other.lower()
        if SINGULAR_FORMS.get(low) == high or (low.endswith("s") and len(low) > len(high) > 0):
            return number
    raise Unreadable(f"the forms of the verb are {right!r} and {wrong!r}, which do not show its number")


def parse_count(row: dict[str, Any], name: str) -> int:
    """Return a column that holds a whole number from 0."""
    text = row[name]
    if not (text.isascii() and text.isdigit()):
        raise Unreadable(f"the column '{name}' is {text!r}, but a whole number is expected")
    return int(text)


def words_before(words: list[str], verb: int) -> tuple[str, ...]:
    """Return the words before the verb, of which there must be some."""
    if not 0 < verb < len(words):
        raise Unreadable(f"the verb is word {verb + 1} of {len(words)}, but it must be one after the first")
    return tuple(words[:verb])
