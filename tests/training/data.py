"""Small labelled data that a tiny model can learn."""

from collections.abc import Sequence

from headscope.core.example import Example
from tests.models import WORDS, text

NAMES = ("cat", "dog")


def labelled(many: int, start: int = 0) -> list[Example]:
    """Texts that begin with the name of their class."""
    return [
        Example(f"{place}", f"{NAMES[place % 2]} {text(3 + place % 5, seed=place)}", None, None, place % 2,
                {"label_name": NAMES[place % 2]})
        for place in range(start, start + many)
    ]  # fmt: skip


def paired(many: int) -> list[Example]:
    """Pairs whose label is the same words' share in both."""
    return [
        Example(f"{place}", text(4, seed=place), text(4, seed=place + place % 3), None, float(place % 3) / 2)
        for place in range(many)
    ]


def choosing(many: int, choices: Sequence[str] = ("cat", "dog")) -> list[Example]:
    """Which of two words the text begins with."""
    return [
        Example(f"{place}", f"{NAMES[place % 2]} {text(3, seed=place)}", None, None, place % 2,
                {"choices": tuple(choices)})
        for place in range(many)
    ]  # fmt: skip


def plain(many: int) -> list[Example]:
    """The same few words in the same order, again and again."""
    return [Example(f"{place}", " ".join(WORDS[: 6 + place % 3])) for place in range(many)]
