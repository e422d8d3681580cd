"""What a tagger is given and what it gives."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from headscope.data.tokenizing.words import Span

Item = str | tuple[str, ...]
"""A text whose words are to be found, or the words themselves."""


@dataclass(frozen=True)
class Tagged:
    """The universal part of speech of every word, and where the words stand if they were found in a text."""

    tags: tuple[str, ...]
    spans: tuple[Span, ...] | None = None


class Tagging(ABC):
    """Something that tags words. `name` changes with everything that can change a tag: tags are kept under it."""

    name: str

    @abstractmethod
    def __call__(self, items: Sequence[Item]) -> list[Tagged]:
        """The tags of every item."""


def words_at(text: str, spans: Sequence[Span]) -> tuple[str, ...]:
    """The words of a text.

    >>> words_at("It rained.", [(0, 2), (3, 9), (9, 10)])
    ('It', 'rained', '.')
    """
    return tuple(text[start:end] for start, end in spans)
