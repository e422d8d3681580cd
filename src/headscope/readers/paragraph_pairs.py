"""Pairs of consecutive paragraphs of running text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import ClassVar, Literal

from headscope.core.errors import InputError
from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable
from headscope.core.spec import check_choices
from headscope.data.reading.files import find_file, list_folder, read_lines

Line = tuple[int, str, str | None]
Paragraph = tuple[int, str]
"""The line number and the text."""

UNKNOWN = 20
"""A paragraph of WikiText with more than one unknown word in so many is left out."""

_TITLE, _HEADING = re.compile("= [^=]"), re.compile("=")


@dataclass(frozen=True)
class ParagraphPairs(Reader):
    """Two consecutive paragraphs of a text as text and pair, as Clark et al. (2019) give them to BERT.

    Reads a text file, or all .txt files of a folder. Paragraphs of `format="plain"` are separated by empty lines. In
    "wikitext" each line is one: headings are left out, a title ends an article, `@-@` and spaces before punctuation are
    undone, unknown words become `unknown`, and a paragraph with more than one of them in twenty words is left out. Each
    paragraph begins one pair; with `overlap=False` it is in one pair at most.
    """

    format: Literal["plain", "wikitext"] = "plain"
    overlap: bool = True
    unknown: str = "[UNK]"

    cites: ClassVar[tuple[str, ...]] = ("clark2019",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:
        """Read the pairs of a file, or of all text files of a folder."""
        files = _find_files(path)
        columns = Columns(text="text", pair="pair", id="id")
        return RecordTable(path, self._read(files), columns, ("id", "text", "pair", "document"))

    def _read(self, files: list[Path]) -> Iterator[Record | Malformed]:
        for file in files:
            runs = self._split(read_lines(file)) if self.format == "wikitext" else _split_plain(read_lines(file))
            for number, run in enumerate(runs):
                if isinstance(run, Malformed):
                    yield run
                    continue
                pairs = pairwise(run) if self.overlap else zip(run[::2], run[1::2], strict=False)
                for (line, first), (_, second) in pairs:
                    name, document = f"{file.stem}-{line}", f"{file.stem}-{number}"
                    yield Record(line, {"id": name, "text": first, "pair": second, "document": document})

    def _split(self, lines: Iterable[Line]) -> Iterator[list[Paragraph] | Malformed]:
        """Yield runs of consecutive paragraphs of one article; one that is left out ends its run."""
        run: list[Paragraph] = []
        for number, text, problem in lines:
            line = text.strip()
            if problem:
                yield Malformed(number, problem)
            elif _TITLE.match(line) or line.count("<unk>") * UNKNOWN > len(line.split()):
                yield run
                run = []
            elif line and not _HEADING.match(line):
                run.append((number, undo_wikitext(line, self.unknown)))
        yield run


def undo_wikitext(line: str, unknown: str = "[UNK]") -> str:
    """Undo what WikiText does to unknown words, numbers, hyphens and punctuation.

    >>> undo_wikitext('It weighs 2 @.@ 5 kg , and is " well @-@ known " ( <unk> ) .')
    'It weighs 2.5 kg, and is "well-known" ([UNK]).'
    """
    line = line.replace("<unk>", unknown)
    line = re.sub(r" @([-,.])@ ", r"\1", line)
    line = re.sub(r'" ([^"]*?) "', r'"\1"', line)
    line = re.sub(r" ([,.;:!?)\]%]|'s|'t|n't|'re|'ve|'ll|'d|'m)(?= |$|[,.;:!?)\]\"])", r"\1", line)
    return re.sub(r"([(\[$£]) ", r"\1", line)


def _split_plain(lines: Iterable[Line]) -> Iterator[list[Paragraph] | Malformed]:
    """Yield all paragraphs of a text as one run; an unreadable line ends it."""
    run: list[Paragraph] = []
    for filled, group in groupby(lines, key=lambda line: bool(line[1].strip())):
        paragraph = list(group)
        broken = [Malformed(number, problem) for number, _, problem in paragraph if problem]
        if broken:
            yield run
            yield from broken
            run = []
        elif filled:
            run.append((paragraph[0][0], " ".join(text.strip() for _, text, _ in paragraph)))
    yield run


def _find_files(path: str) -> list[Path]:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return [find_file(path)]
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise InputError(f"The folder {folder} has no .txt file. It holds: {list_folder(folder)}. Name a text file.")
    return [find_file(file) for file in files]
