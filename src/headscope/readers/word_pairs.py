"""Tables of word pairs: a text, two of its words, and the relation between them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from headscope.core.reader import Columns, Malformed, Reader, Record, RecordTable, Unreadable
from headscope.data.reading.files import find_file
from headscope.data.reading.tab_separated import read_tab_table

HEADER = ("text", "word_i", "word_j", "relation")


@dataclass(frozen=True)
class WordPairs(Reader):
    """A tab-separated table with the columns text, word_i, word_j and relation.

    A word is given by its number, from 0, among those between the spaces of the text, or by itself where it occurs
    once. Rows with the same text are one example, whose column `word_pairs` has all of its pairs: (i, j, relation).
    """

    cites: ClassVar[tuple[str, ...]] = ("kovaleva2019",)

    def __call__(self, path: str) -> RecordTable:
        """Read the pairs of a file, text by text."""
        table = read_tab_table(find_file(path), required=HEADER)
        return RecordTable(table.name, _join_texts(table.rows), Columns(text="text", words="words"))


def _join_texts(rows: Iterable[Record | Malformed]) -> Iterator[Record | Malformed]:
    """Yield malformed rows as they come, then every text with its pairs, numbered after its first row."""
    first: dict[str, int] = {}
    pairs: dict[str, list[tuple[int, int, str]]] = {}
    for row in rows:
        if isinstance(row, Malformed):
            yield row
            continue
        text, *words, relation = (str(row.values[name]) for name in HEADER)
        try:
            i, j = (_find_word(text.split(), name, word) for name, word in zip(HEADER[1:], words, strict=False))
            if not relation.strip():
                raise Unreadable("the relation is empty")
        except Unreadable as error:
            yield Malformed(row.number, str(error))
            continue
        first.setdefault(text, row.number)
        pairs.setdefault(text, []).append((i, j, relation.strip()))
    for text, number in first.items():
        yield Record(number, {"text": text, "words": tuple(text.split()), "word_pairs": tuple(pairs[text])})


def _find_word(words: list[str], name: str, word: str) -> int:
    """Return the number of a word, which is given by it or by the word itself."""
    if word.isdecimal():
        if int(word) < len(words):
            return int(word)
        raise Unreadable(f"{name} is {word}, but the text has the words 0 to {len(words) - 1}")
    if words.count(word) == 1:
        return words.index(word)
    count = f"occurs {words.count(word)} times" if word in words else "does not occur"
    raise Unreadable(f"{name} is '{word}', which {count} between the spaces of the text; give its number, from 0")
