"""What the tagger looks at: names of what holds for a word, its neighbours, and the tags before it.

The first letter of a name says what it is about, so that no two kinds of name meet.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

START, END = "<", ">"  # what stands before the first word and after the last


@dataclass(frozen=True)
class Features:
    """The names that hold, grouped by what they depend on, so that a sum over a group can be kept and used again.

    `classes` holds the tags that each frequent word had in training, one letter for each, the most frequent first.
    """

    classes: Mapping[str, str]

    def own(self, pair: tuple[str, str]) -> list[str]:
        """The word itself, and how the sentence is written."""
        kind, word = pair
        low, form = word.lower(), shape(word)
        looks = ["a", "b" + low, "c" + self.classes.get(low, ""), "d" + word if word != low else "d", "e" + form]
        parts = [f"{size}{low[-size:]}" for size in (1, 2, 3, 4, 5)] + [f"-{low[:size]}" for size in (1, 2, 3, 4)]
        return [*looks, *parts, f"f{form} {low[-2:]}", "z" + kind, f"A{kind} {form}"]

    def around(self, word: str) -> tuple[list[str], ...]:
        """What a word says about others: about the next, the last, the second next and the second last."""
        low, form = word.lower(), shape(word)
        kind, end = self._class(low), low[-3:]
        return (
            ["g" + low, "h" + end, "i" + kind, "j" + form],
            ["n" + low, "o" + end, "p" + kind, "q" + form],
            ["v" + low, "w" + kind],
            ["x" + low, "y" + kind],
        )

    def pair(self, words: tuple[str, str]) -> tuple[list[str], ...]:
        """What two words say together, about the second and about the first."""
        first, second = words
        low, next_low = first.lower(), second.lower()
        kinds, forms = f"{self._class(low)} {self._class(next_low)}", f"{letters(first)} {letters(second)}"
        return (
            [f"k{low} {next_low}", "l" + kinds, "m" + forms],
            [f"r{low} {next_low}", "s" + kinds, f"t{low} {self._class(next_low)}", "u" + forms],
        )

    def history(self, pair: tuple[int, int]) -> list[str]:
        """The tags of the last word and of the one before that."""
        last, older = pair
        return [f"B{last}", f"C{last} {older}", f"D{older}"]

    def word_history(self, pair: tuple[str, int]) -> list[str]:
        """The last tag with this word."""
        low, last = pair[0].lower(), pair[1]
        return [f"E{last} {low}", f"F{last} {self._class(low)}"]

    def next_history(self, pair: tuple[str, int]) -> list[str]:
        """The last tag with the word that follows."""
        return [f"G{pair[1]} {self._class(pair[0].lower())}"]

    def _class(self, low: str) -> str:
        """What a word can be; for unknown words how it ends."""
        return self.classes.get(low) or "~" + low[-2:]


@lru_cache(maxsize=50_000)
def shape(word: str) -> str:
    """Capitals, small letters and digits, repetitions left out, six signs at most.

    >>> shape("iPhone"), shape("B-52s"), shape("...")
    ('xXx', 'X-dx', '.')
    """
    for pattern, sign in ((r"[A-Z]", "X"), (r"[a-z]", "x"), (r"\d", "d"), (r"(.)\1+", r"\1")):
        word = re.sub(pattern, sign, word)
    return word[:6]


@lru_cache(maxsize=50_000)
def letters(word: str) -> str:
    """One sign for how a word is written: capitals, a capital first, mixed, small, digits, or its first sign."""
    if word.isupper():
        return "U" if len(word) > 1 else "I"
    if word[:1].isupper():
        return "C" if word[1:].islower() else "M"
    if word[:1].isalpha():
        return "l" if word.isalpha() else "m"
    return "d" if word[:1].isdigit() else word[:1]


def kind_of(words: Sequence[str]) -> str:
    """How a sentence is written: all capitals, none, a title; otherwise its length up to four words."""
    spelled = [word for word in words if word[:1].isalpha()]
    if not spelled:
        return "none"
    if len(spelled) > 1 and all(word.isupper() for word in spelled):
        return "capitals"
    if not any(word[:1].isupper() for word in spelled):
        return "small"
    long = [word for word in spelled if len(word) > 3][1:]
    if len(long) > 1 and sum(word[:1].isupper() for word in long) > 0.7 * len(long):
        return "title"
    return str(min(len(words), 4))
