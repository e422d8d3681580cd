"""The files of the CoNLL-2012 shared task: words with a parse and coreference."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from headscope.core.errors import InputError
from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable, Unreadable
from headscope.data.coreference.constituents import find_head, parse_brackets
from headscope.data.reading.files import find_file, list_folder, read_lines

BEGIN = re.compile(r"#begin document \((.*)\);? *(?:part (\d+))?")
MARK = re.compile(r"(\()?(\d+)(\))?")
EMPTY = ("-", "_", "*", "")
LEAST_COLUMNS = 12
PATTERNS = ("*gold_conll", "*auto_conll", "*.conll")

PENN_TAGS = {
    "CCONJ": "CC",
    "NUM": "CD",
    "DET": "DT PDT",
    "PRON": "EX PRP PRP$ WDT WP WP$",
    "X": "FW LS AFX ADD XX",
    "ADP": "IN RP",
    "ADJ": "JJ JJR JJS",
    "AUX": "MD",
    "NOUN": "NN NNS",
    "PROPN": "NNP NNPS",
    "PART": "POS TO",
    "ADV": "RB RBR RBS WRB",
    "SYM": "SYM $ #",
    "INTJ": "UH",
    "VERB": "VB VBD VBG VBN VBP VBZ",
}
"""Tags of the Penn Treebank by their universal tag; all others are punctuation."""

UNIVERSAL = {penn: universal for universal, tags in PENN_TAGS.items() for penn in tags.split()}

NUMBERS = {"NN": "Number=Sing", "NNP": "Number=Sing", "NNS": "Number=Plur", "NNPS": "Number=Plur"}


@dataclass(frozen=True)
class Conll2012(Reader):
    """CoNLL-2012 (OntoNotes): one example per sentence, with its words as `words` (Pradhan et al., 2012).

    Columns: `mentions` (first word, last word, entity, ""), `mention_heads` (the head word of each, from the parse),
    `tags` (universal parts of speech), `penn_tags` (those of the file), `features` (the number of nouns), `speakers`
    and `document`, with its part. The path is a file, or a folder, of which all files are read that end in gold_conll;
    without such, those in auto_conll or .conll.
    """

    endings: ClassVar[tuple[str, ...]] = ("v4_gold_conll", "v4_auto_conll", "v9_gold_conll", "v9_auto_conll")
    cites: ClassVar[tuple[str, ...]] = ("pradhan2012",)

    def __call__(self, path: str) -> RecordTable:
        """Read the sentences of a file, or of all files of a folder."""
        files = _find_files(path)
        rows = (row for file in files for row in _sentences(file, alone=len(files) == 1))
        return RecordTable(path, rows, Columns(words="words", id="id"))


@dataclass
class _Document:
    """The name of a document, its open mentions, and the number of sentences so far."""

    name: str = ""
    open: list[tuple[int, str]] = field(default_factory=list)
    sentences: int = 0


def _find_files(path: str) -> list[Path]:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return [find_file(path)]
    for pattern in PATTERNS:
        if files := sorted(folder.rglob(pattern)):
            return [find_file(file) for file in files]
    raise InputError(
        f"{folder} has no file that ends in gold_conll, auto_conll or .conll. It holds: {list_folder(folder)}."
    )


def _sentences(path: Path, *, alone: bool) -> Iterator[Record | Malformed]:
    document, lines = _Document(), []
    for number, text, problem in [*read_lines(path), (0, "", None)]:
        begin = BEGIN.match(text)
        if text.strip() and not text.startswith("#"):
            lines.append((number, text.split(), problem))
        elif lines:
            row = _parse_sentence(lines, document)
            in_file = "" if alone else f" ({path.name})"
            yield Malformed(row.number, row.problem + in_file) if isinstance(row, Malformed) else row
            lines = []
        if begin:
            document = _Document(f"{begin[1]}-{int(begin[2] or 0)}")


def _parse_sentence(lines: Sequence[tuple[int, list[str], str | None]], document: _Document) -> Record | Malformed:
    mentions: list[tuple[int, int, str, str]] = []
    document.sentences += 1
    number = lines[0][0]
    try:
        for word, (number, cells, problem) in enumerate(lines):  # noqa: B007  (the error names the current line)
            if problem or len(cells) < LEAST_COLUMNS:
                raise Unreadable(problem or f"it has {len(cells)} columns, but a word of CoNLL-2012 has at least 12")
            if cells[2] != str(word):
                raise Unreadable(f"the word's number is '{cells[2]}', but {word} is expected")
            mentions += _parse_marks(cells[-1], word, document)
        if document.open:
            raise Unreadable(f"the mention '{document.open[0][1]}' is open at the end of the sentence")
        rows = [cells for _, cells, _ in lines]
        return Record(lines[0][0], _values(rows, sorted(mentions), document))
    except Unreadable as error:
        document.open.clear()
        return Malformed(number, str(error))


def _parse_marks(marks: str, word: int, document: _Document) -> list[tuple[int, int, str, str]]:
    """Return the mentions that end at a word, such as `(3|(4)` or `3)`."""
    mentions = []
    for mark in () if marks in EMPTY else marks.split("|"):
        match = MARK.fullmatch(mark)
        if match is None or not (match[1] or match[3]):
            raise Unreadable(f"the coreference '{marks}' cannot be read")
        opened, entity, closed = match.groups()
        if opened:
            document.open.append((word, entity))
        if closed:
            starts = [index for index, mention in enumerate(document.open) if mention[1] == entity]
            if not starts:
                raise Unreadable(f"the mention '{entity}' is closed here, but it is not open")
            mentions.append((document.open.pop(starts[-1])[0], word, entity, ""))
    return mentions


def _values(rows: Sequence[Sequence[str]], mentions: Sequence[tuple[int, int, str, str]], document: _Document) -> Any:
    tags, bits = [cells[4] for cells in rows], [cells[5] for cells in rows]
    tree = parse_brackets([bit if bit not in ("-", "_") else "*" for bit in bits], tags)
    name = document.name or f"{rows[0][0]}-{int(rows[0][1]) if rows[0][1].isdecimal() else 0}"
    return {
        "id": f"{name}-{document.sentences}",
        "words": tuple(cells[3] for cells in rows),
        "mentions": tuple(mentions),
        "mention_heads": tuple(find_head(tree, first, last) for first, last, _, _ in mentions),
        "tags": tuple(UNIVERSAL.get(tag, "PUNCT") for tag in tags),
        "penn_tags": tuple(tags),
        "features": tuple(NUMBERS.get(tag, "") for tag in tags),
        "speakers": tuple(cells[9] for cells in rows),
        "document": name,
    }
