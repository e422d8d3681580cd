"""CoNLL-U treebanks: words with tags, heads, relations and mentions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable, Unreadable
from headscope.data.reading.files import find_file, read_lines

COLUMNS = (1, 2, 3, 5, 6, 7)
"""Indices of form, lemma, universal tag, features, head and relation."""


Mention = tuple[int, int, str, str]
"""First word, last word, entity, type."""

BRACKETS = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")
FIELDS = (("eid", "GRP"), ("etype", "entity"))
"""Names of the fields for an entity's id and its type, as files use them."""


@dataclass
class EntityParser:
    """Parses the mentions of one document word by word.

    `(3-person-new` opens a mention, `3)` closes it, `(3-person-new)` does both. The comment `global.Entity` names the
    fields between the dashes. A mention across sentences is returned once for each sentence.

    >>> parser = EntityParser()
    >>> parser.parse("(3-person(4-place)", 0, 0), parser.parse("3)", 1, 1)
    ([(0, 0, '4', 'place')], [(0, 1, '3', 'person')])
    """

    order: tuple[str, ...] = ("eid", "etype")
    open: list[tuple[int, str, str]] = field(default_factory=list)

    def parse(self, brackets: str, first: int, last: int) -> list[Mention]:
        """Return the mentions that end here; new ones start at the word `first`, closed ones end at `last`."""
        if BRACKETS.sub("", brackets):
            raise Unreadable(f"the brackets of Entity={brackets} cannot be parsed")
        mentions = []
        for opened, closed_at_once, closed in BRACKETS.findall(brackets):
            entity, kind = self._fields(opened or closed)
            if opened:
                self.open.append((first, entity, kind))
            if closed_at_once or closed:
                start, entity, kind = self._close(entity)
                mentions.append((start, last, entity, kind))
        return [mention for mention in mentions if mention[0] <= mention[1]]  # an empty node is not a word

    def end_sentence(self, words: int) -> list[Mention]:
        """Return the mentions that are open at the end of a sentence; they continue at the next one's first word."""
        mentions = [(start, words - 1, entity, kind) for start, entity, kind in self.open if start < words]
        self.open = [(0, entity, kind) for _, entity, kind in self.open]
        return mentions

    def _fields(self, text: str) -> tuple[str, str]:
        values = dict(zip(self.order, text.split("-"), strict=False))
        entity, kind = (next((values.get(name, "") for name in names if name in self.order), "") for names in FIELDS)
        return (entity or text.split("-")[0]).partition("[")[0], kind  # e5[1/2] is the first part of e5

    def _close(self, entity: str) -> tuple[int, str, str]:
        for index in reversed(range(len(self.open))):
            if self.open[index][1] == entity:
                return self.open.pop(index)
        raise Unreadable(f"the mention '{entity}' is closed here, but it is not open")


@dataclass(frozen=True)
class Conllu(Reader):
    """CoNLL-U: one example per sentence, with its syntactic words as `words`.

    Columns: `tags` (universal parts of speech), `heads` (index of each word's head from 0, -1 for the root),
    `relations`, `lemmas`, `features`, and where `Entity=` marks them `mentions`: (first word, last word, entity,
    type). `document` is the id of the document, or its number from 1, where the file marks documents. Tags and heads
    that are blank in the file are left out. Multiword tokens and empty nodes are not words.
    """

    endings: ClassVar[tuple[str, ...]] = ("conllu", "conll")

    def __call__(self, path: str) -> RecordTable:
        """Read the sentences of a file."""
        file = find_file(path)
        return RecordTable(str(file), _sentences(file), Columns(text="text", words="words"))


@dataclass
class _Block:
    """The lines of one sentence."""

    start: int = 0
    comments: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[int, list[str]]] = field(default_factory=list)
    malformed: Malformed | None = None

    @property
    def new_document(self) -> bool:
        return any(name.split()[0] == "newdoc" for name in self.comments if name)

    def document_name(self, number: int) -> str:
        return self.comments.get("newdoc id") or str(number)


def _sentences(path: Path) -> Iterator[Record | Malformed]:
    """Yield the sentences; the last sentence of a document is malformed if a mention is still open."""
    entities, marked, row = EntityParser(), False, None
    documents, document = 0, ""
    for block in chain(_blocks(path), [None]):
        if row is not None:
            if entities.open and (block is None or block.new_document):
                row = Malformed(row.number, f"the mention '{entities.open[0][1]}' is open at the end of the document")
            yield row
        if block is None:
            return
        if block.new_document:
            entities, documents = EntityParser(entities.order), documents + 1
            document = block.document_name(documents)
        if "global.Entity" in block.comments:
            marked, entities.order = True, tuple(block.comments["global.Entity"].split("-"))
        row = block.malformed or _parse_sentence(block, entities, marked)
        if document and isinstance(row, Record):
            row = Record(row.number, {**row.values, "document": document})


def _blocks(path: Path) -> Iterator[_Block]:
    block = _Block()
    for number, text, problem in chain(read_lines(path), [(0, "", None)]):
        if not text.strip():
            if block.lines or block.malformed:
                yield block
                block = _Block()
            continue
        block.start = block.start or number
        if problem:
            block.malformed = block.malformed or Malformed(number, problem)
        elif text.startswith("#"):
            name, _, value = text[1:].partition("=")
            block.comments[name.strip()] = value.strip()
        else:
            block.lines.append((number, text.split("\t")))


def _parse_sentence(block: _Block, entities: EntityParser, marked: bool) -> Record | Malformed:
    number, mentions = block.start, []
    words: list[list[str]] = []
    length = sum(cells[0].isdecimal() for _, cells in block.lines)
    try:
        for number, cells in block.lines:  # noqa: B007  (the error names the current line)
            if len(cells) != 10:
                raise Unreadable(f"it has {len(cells)} columns, but a word of CoNLL-U has 10")
            if _is_word(cells[0], len(words) + 1):
                _check_head(cells, length)
                words.append(cells)
            if "Entity=" in cells[9]:
                if "-" in cells[0]:
                    raise Unreadable(f"the multiword token {cells[0]} has Entity=, which belongs to words")
                first = len(words) - 1 if "." not in cells[0] else len(words)
                marks = [item.removeprefix("Entity=") for item in cells[9].split("|") if item.startswith("Entity=")]
                mentions += entities.parse(marks[0] if marks else "", first, len(words) - 1)
        if not words:
            raise Unreadable("the sentence has no words")
    except Unreadable as error:
        return Malformed(number, str(error))
    values = _values(block.comments, words)
    mentions += entities.end_sentence(len(words))
    if marked or mentions:
        values["mentions"] = tuple(sorted(mentions))
    return Record(block.start, values)


def _is_word(name: str, expected: int) -> bool:
    """Return whether a line is the next word; `3-4` is a multiword token and `3.1` an empty node."""
    if name == str(expected):
        return True
    if not all(digits.isdecimal() for digits in re.split(r"[-.]", name, maxsplit=1)) or name.isdecimal():
        raise Unreadable(f"the word's number is '{name}', but {expected} is expected")
    return False


def _check_head(cells: list[str], length: int) -> None:
    name, head = cells[0], cells[6]
    if head == "_":
        return
    if not head.isdecimal() or int(head) > length:
        raise Unreadable(f"the head of word {name} is '{head}', but the words are 1 to {length} (0 is the root)")
    if head == name:
        raise Unreadable(f"word {name} is its own head")


def _values(comments: dict[str, str], words: list[list[str]]) -> dict[str, Any]:
    forms, lemmas, tags, features, heads, relations = (tuple(cells[index] for cells in words) for index in COLUMNS)
    values: dict[str, Any] = {"text": comments.get("text") or " ".join(forms), "words": forms, "lemmas": lemmas}
    values["features"] = tuple("" if feature == "_" else feature for feature in features)
    if name := comments.get("sent_id"):
        values["sent_id"] = name
    if set(tags) != {"_"}:
        values["tags"] = tags
    if "_" not in heads:
        values |= {"heads": tuple(int(head) - 1 for head in heads), "relations": relations}
    return values
