"""CoNLL-U treebanks: words with tags, heads, relations and mentions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable, Unreadable
from headscope.data.reading.entities import Entities
from headscope.data.reading.lines import read_lines
from headscope.data.reading.locate import find_file

COLUMNS = (1, 2, 3, 5, 6, 7)
"""Where form, lemma, universal tag, features, head and relation stand."""


@dataclass(frozen=True)
class Conllu(Reader):
    """CoNLL-U: one example a sentence, its syntactic words as `words`.

    Columns: `tags` (universal parts of speech), `heads` (index of each word's head from 0, -1 for the root),
    `relations`, `lemmas`, `features`, and `mentions` where `Entity=` marks them: (first word, last word, entity,
    type). Tags and heads that a file leaves blank are left out. Multiword tokens and empty nodes are not words.
    """

    endings: ClassVar[tuple[str, ...]] = ("conllu", "conll")

    def __call__(self, place: str) -> RecordTable:
        """The sentences of a file."""
        path = find_file(place)
        return RecordTable(str(path), _sentences(path), Columns(text="text", words="words"))


@dataclass
class _Block:
    """The lines of one sentence."""

    start: int = 0
    comments: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[int, list[str]]] = field(default_factory=list)
    wrong: Malformed | None = None

    @property
    def new_document(self) -> bool:
        return any(name.split()[0] == "newdoc" for name in self.comments if name)


def _sentences(path: Path) -> Iterator[Record | Malformed]:
    """Sentence by sentence; the last one of a document answers for mentions that are still open."""
    entities, marked, held = Entities(), False, None
    for block in chain(_blocks(path), [None]):
        if held is not None:
            if entities.open and (block is None or block.new_document):
                held = Malformed(held.line, f"the mention '{entities.open[0][1]}' is open at the end of the document")
            yield held
        if block is None:
            return
        if block.new_document:
            entities = Entities(entities.order)
        if "global.Entity" in block.comments:
            marked, entities.order = True, tuple(block.comments["global.Entity"].split("-"))
        held = block.wrong or _sentence(block, entities, marked)


def _blocks(path: Path) -> Iterator[_Block]:
    block = _Block()
    for number, text, problem in read_lines(path):
        if not text.strip():
            if block.lines or block.wrong:
                yield block
                block = _Block()
            continue
        block.start = block.start or number
        if problem:
            block.wrong = block.wrong or Malformed(number, problem)
        elif text.startswith("#"):
            name, _, value = text[1:].partition("=")
            block.comments[name.strip()] = value.strip()
        else:
            block.lines.append((number, text.split("\t")))
    if block.lines or block.wrong:
        yield block


def _sentence(block: _Block, entities: Entities, marked: bool) -> Record | Malformed:
    number, mentions = block.start, []
    words: list[list[str]] = []
    try:
        many = sum(cells[0].isdecimal() for _, cells in block.lines)
        for number, cells in block.lines:  # noqa: B007  (the error names the line it came to)
            if len(cells) != 10:
                raise Unreadable(f"it has {len(cells)} columns, but a word of CoNLL-U has 10")
            if _is_word(cells[0], len(words) + 1):
                _check_head(cells, many)
                words.append(cells)
            if "Entity=" in cells[9]:
                if "-" in cells[0]:
                    raise Unreadable(f"Entity= stands on the multiword token {cells[0]}, where a word is expected")
                first = len(words) - 1 if "." not in cells[0] else len(words)
                mentions += entities.read(_misc(cells[9], "Entity"), first, len(words) - 1)
        if not words:
            raise Unreadable("the sentence has no words")
    except Unreadable as wrong:
        return Malformed(number, str(wrong))
    found = _values(block.comments, words)
    mentions += entities.cut(len(words))
    if marked or mentions:
        found["mentions"] = tuple(sorted(mentions))
    return Record(block.start, found)


def _is_word(name: str, expected: int) -> bool:
    """Whether a line is a word, with the number that comes next; `3-4` is a multiword token, `3.1` an empty node."""
    if name == str(expected):
        return True
    if not all(part.isdecimal() for part in re.split(r"[-.]", name, maxsplit=1)) or name.isdecimal():
        raise Unreadable(f"the word's number is '{name}', where {expected} is expected")
    return False


def _check_head(cells: list[str], many: int) -> None:
    name, head = cells[0], cells[6]
    if head == "_":
        return
    if not head.isdecimal() or int(head) > many:
        raise Unreadable(f"the head of word {name} is '{head}', but the words are 1 to {many} (0 is the root)")
    if head == name:
        raise Unreadable(f"word {name} is its own head")


def _values(comments: dict[str, str], words: list[list[str]]) -> dict[str, Any]:
    forms, lemmas, tags, features, heads, relations = (tuple(each[place] for each in words) for place in COLUMNS)
    found: dict[str, Any] = {"text": comments.get("text") or " ".join(forms), "words": forms, "lemmas": lemmas}
    found["features"] = tuple("" if each == "_" else each for each in features)
    if name := comments.get("sent_id"):
        found["sent_id"] = name
    if set(tags) != {"_"}:
        found["tags"] = tags
    if "_" not in heads:
        found |= {"heads": tuple(int(head) - 1 for head in heads), "relations": relations}
    return found


def _misc(cell: str, name: str) -> str:
    return next((part[len(name) + 1 :] for part in cell.split("|") if part.startswith(f"{name}=")), "")
