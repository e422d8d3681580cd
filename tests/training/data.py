"""Small labeled data that a tiny model can learn."""

from collections.abc import Sequence

from headscope.core.example import Example
from tests.models import WORDS, text

NAMES = ("cat", "dog")


def labeled(count: int, start: int = 0) -> list[Example]:
    """Texts that begin with the name of their class."""
    return [
        Example(
            f"{index}",
            f"{NAMES[index % 2]} {text(3 + index % 5, seed=index)}",
            None,
            None,
            index % 2,
            {"label_name": NAMES[index % 2]},
        )
        for index in range(start, start + count)
    ]


def paired(count: int) -> list[Example]:
    """Pairs whose label is the same words' share in both."""
    return [
        Example(f"{index}", text(4, seed=index), text(4, seed=index + index % 3), None, float(index % 3) / 2)
        for index in range(count)
    ]


def choosing(count: int, choices: Sequence[str] = ("cat", "dog")) -> list[Example]:
    """Which of two words the text begins with."""
    return [
        Example(
            f"{index}", f"{NAMES[index % 2]} {text(3, seed=index)}", None, None, index % 2, {"choices": tuple(choices)}
        )
        for index in range(count)
    ]


def plain(count: int) -> list[Example]:
    """The same few words in the same order, again and again."""
    return [Example(f"{index}", " ".join(WORDS[: 6 + index % 3])) for index in range(count)]
