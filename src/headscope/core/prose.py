"""Words and counts in sentences: error messages, captions and reports."""

from collections.abc import Iterable
from typing import Any


def join_words(words: Iterable[object], last: str = "and", *, limit: int | None = None, empty: str = "none") -> str:
    """Return an enumeration in prose; past `limit` items the rest is counted.

    >>> join_words(["RTE"]), join_words(["RTE", "MRPC", "QNLI"]), join_words("ab", "or")
    ('RTE', 'RTE, MRPC and QNLI', 'a or b')
    >>> join_words("abcdef", limit=3), join_words([])
    ('a, b, c and 3 more', 'none')
    """
    texts = [str(word) for word in words]
    if limit is not None and len(texts) > limit:
        texts = [", ".join(texts[:limit]), f"{len(texts) - limit} more"]
    if len(texts) < 2:
        return texts[0] if texts else empty
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def count_noun(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun in the right number.

    >>> count_noun(1, "example"), count_noun(2490, "example"), count_noun(2, "class", "classes")
    ('1 example', '2,490 examples', '2 classes')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def format_bytes(count: int) -> str:
    """Return a number of bytes with its unit.

    >>> format_bytes(512), format_bytes(1_234_567)
    ('512 bytes', '1.23 MB')
    """
    units = ["bytes", "kB", "MB", "GB", "TB"]
    power = min(len(units) - 1, (len(str(max(count, 1))) - 1) // 3)
    return f"{count / 1000**power:.3g} {units[power]}"


def format_signed(value: Any, form: str) -> str:
    """Return a number with a typographic minus, and without one where all its digits are 0.

    >>> format_signed(-0.25, ".2f"), format_signed(-0.004, ".2f"), format_signed(3.2, "+.1f")
    ('−0.25', '0.00', '+3.2')
    """
    text = format(value, form)
    return text.replace("-", "−") if text.strip("-0.,") else text.replace("-", "")
