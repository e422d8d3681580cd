"""The paragraphs of GAP (Webster et al., 2018) that come with the package, and their sentences."""

import bz2
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from headscope.core.reader import Columns, Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.bundled.files import bundled_file

_SENTENCE_END = re.compile(r"[.!?][\"”')]*\s+(?=[\"“'(]?[A-Z0-9])")


@dataclass(frozen=True)
class GapTask(Reader):
    """The bundled paragraphs of GAP as the examples of a task; a subclass makes rows from each paragraph."""

    split: Literal["development", "validation"] = "development"

    needs_path: ClassVar[bool] = False
    columns: ClassVar[Columns]
    header: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:  # noqa: ARG002  (the data are in the package)
        """Return the rows of all paragraphs of the split."""
        rows = (
            Record(number, row) for number, paragraph in read_gap_rows(self.split) for row in self.make_rows(paragraph)
        )
        return RecordTable(gap_file(self.split), rows, self.columns, self.header)

    @abstractmethod
    def make_rows(self, paragraph: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the examples of one paragraph, which has the columns of GAP."""


def gap_file(split: str) -> str:
    """Return the name of the file of a split."""
    return f"gap_{split}.tsv.bz2"


def read_gap_rows(split: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the columns of every paragraph of a split, development or validation."""
    text = bz2.decompress(bundled_file(gap_file(split)).read_bytes()).decode()
    header, *lines = text.splitlines()
    for number, line in enumerate(lines, 2):
        yield number, dict(zip(header.split("\t"), line.split("\t"), strict=True))


def crop_to_sentences(text: str, offsets: Sequence[int]) -> str:
    """Return the sentences from the one with the first offset to the one with the last.

    >>> crop_to_sentences("It rained. Ann met Eve. She won. All went home.", [11, 24])
    'Ann met Eve. She won.'
    """
    start, end = find_sentences(text, offsets)
    return text[start:end].strip()


def find_sentences(text: str, offsets: Sequence[int]) -> tuple[int, int]:
    """Return where the sentences from the one with the first offset to the one with the last start and end.

    >>> find_sentences("It rained. Ann met Eve. She won. All went home.", [24])
    (24, 33)
    """
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return max(end for end in ends[:-1] if end <= min(offsets)), min(end for end in ends if end > max(offsets))


def halve_at_sentence(text: str) -> tuple[str, str]:
    """Divide a text between the two sentences nearest to its middle; the second part of one sentence is empty.

    >>> halve_at_sentence("It rained. Ann met Eve. She won. All went home.")
    ('It rained. Ann met Eve.', 'She won. All went home.')
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if match.end() < len(text)]
    middle = min(ends, key=lambda end: abs(end - len(text) / 2), default=len(text))
    return text[:middle].strip(), text[middle:].strip()
