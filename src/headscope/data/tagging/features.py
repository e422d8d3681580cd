"""Binary features of the tagger, as names: of a word, its neighbors, and the tags before it.

The first character of a name is its kind, so that features of different kinds have different names.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

START, END = "<", ">"  # padding before the first word and after the last


@dataclass(frozen=True)
class Features:
    """Feature names in groups by what they depend on, so that the sum over a group can be cached.

    `classes` holds the tags of each frequent word in training, one letter per tag, the most frequent first.
    """

    classes: Mapping[str, str]

    def own(self, pair: tuple[str, str]) -> list[str]:
        """Return the features of a word in a sentence of this style."""
        style, word = pair
        low, form = word.lower(), shape(word)
        forms = ["a", "b" + low, "c" + self.classes.get(low, ""), "d" + word if word != low else "d", "e" + form]
        affixes = [f"{size}{low[-size:]}" for size in (1, 2, 3, 4, 5)] + [f"-{low[:size]}" for size in (1, 2, 3, 4)]
        return [*forms, *affixes, f"f{form} {low[-2:]}", "z" + style, f"A{style} {form}"]

    def around(self, word: str) -> tuple[list[str], ...]:
        """Return what a word adds to the words at distance 1, -1, 2 and -2 from it."""
        low, form = word.lower(), shape(word)
        word_class, suffix = self._class(low), low[-3:]
        return (
            ["g" + low, "h" + suffix, "i" + word_class, "j" + form],
            ["n" + low, "o" + suffix, "p" + word_class, "q" + form],
            ["v" + low, "w" + word_class],
            ["x" + low, "y" + word_class],
        )

    def pair(self, words: tuple[str, str]) -> tuple[list[str], ...]:
        """Return what two adjacent words add to the second and to the first."""
        first, second = words
        low, next_low = first.lower(), second.lower()
        classes, forms = f"{self._class(low)} {self._class(next_low)}", f"{letter_case(first)} {letter_case(second)}"
        return (
            [f"k{low} {next_low}", "l" + classes, "m" + forms],
            [f"r{low} {next_low}", "s" + classes, f"t{low} {self._class(next_low)}", "u" + forms],
        )

    def history(self, pair: tuple[int, int]) -> list[str]:
        """Return the features of the last two tags."""
        last, older = pair
        return [f"B{last}", f"C{last} {older}", f"D{older}"]

    def word_history(self, pair: tuple[str, int]) -> list[str]:
        """Return the features of the last tag with this word."""
        low, last = pair[0].lower(), pair[1]
        return [f"E{last} {low}", f"F{last} {self._class(low)}"]

    def next_history(self, pair: tuple[str, int]) -> list[str]:
        """Return the features of the last tag with the next word."""
        return [f"G{pair[1]} {self._class(pair[0].lower())}"]

    def _class(self, low: str) -> str:
        """Return the tags that a word can have, or the suffix of an unknown word."""
        return self.classes.get(low) or "~" + low[-2:]


@lru_cache(maxsize=50_000)
def shape(word: str) -> str:
    """Return the shape of a word: X, x and d for upper case, lower case and digits, without repeats, at most 6 long.

    >>> shape("iPhone"), shape("B-52s"), shape("...")
    ('xXx', 'X-dx', '.')
    """
    for pattern, symbol in ((r"[A-Z]", "X"), (r"[a-z]", "x"), (r"\d", "d"), (r"(.)\1+", r"\1")):
        word = re.sub(pattern, symbol, word)
    return word[:6]


@lru_cache(maxsize=50_000)
def letter_case(word: str) -> str:
    """Return one character for the case of a word: upper, capitalised, mixed, lower, digits, or its first character."""
    if word.isupper():
        return "U" if len(word) > 1 else "I"
    if word[:1].isupper():
        return "C" if word[1:].islower() else "M"
    if word[:1].isalpha():
        return "l" if word.isalpha() else "m"
    return "d" if word[:1].isdigit() else word[:1]


def sentence_style(words: Sequence[str]) -> str:
    """Return whether a sentence is in upper case, lower case or title case; otherwise its length, at most 4."""
    alphabetic = [word for word in words if word[:1].isalpha()]
    if not alphabetic:
        return "none"
    if len(alphabetic) > 1 and all(word.isupper() for word in alphabetic):
        return "capitals"
    if not any(word[:1].isupper() for word in alphabetic):
        return "small"
    long = [word for word in alphabetic if len(word) > 3][1:]
    if len(long) > 1 and sum(word[:1].isupper() for word in long) > 0.7 * len(long):
        return "title"
    return str(min(len(words), 4))
