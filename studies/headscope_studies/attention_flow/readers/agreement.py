"""Subject-verb agreement: two files with one sentence and one line of facts about its verb."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

from headscope.core.errors import InputError
from headscope.core.reader import Malformed, Reader, Record, RecordTable, Unreadable
from headscope.data.reading.agreement import COLUMNS, find_number, parse_count, words_before
from headscope.data.reading.files import find_file, list_folder, read_lines

GOLD = ("verb_index", "verb", "wrong_verb", "attractors")
END = "<eos>"


@dataclass(frozen=True)
class Agreement(Reader):
    """Sentences up to their verb; the label is the number of the verb (Linzen et al., 2016).

    `NAME.text` has one sentence per line, with spaces between its words. `NAME.gold` has, separated by tabs, the index
    of the verb from 0, its right form, its wrong form, and the number of attractors: nouns of the other number between
    the subject and the verb. The files do not say where these are: `subject_position` and `attractor_positions` are
    None. A line whose two forms are equal has no label, and is malformed.
    """

    cites: ClassVar[tuple[str, ...]] = ("linzen2016",)

    def __call__(self, path: str) -> RecordTable:
        """Read NAME.text and NAME.gold: a folder with one such pair, or one of the two files."""
        text, gold = _find_files(Path(path).expanduser())
        return RecordTable(str(gold), _read_rows(text, gold), COLUMNS)


def _find_files(path: Path) -> tuple[Path, Path]:
    if path.is_dir():
        names = sorted(path.glob("*.gold"))
        if len(names) != 1:
            count = "no file" if not names else f"{len(names)} files"
            raise InputError(
                f"{path} has {count} with the ending .gold, but one is expected, with a .text of the same name. It "
                f"holds: {list_folder(path)}."
            )
        path = names[0]
    return find_file(path.with_suffix(".text")), find_file(path.with_suffix(".gold"))


def _read_rows(text: Path, gold: Path) -> Iterator[Record | Malformed]:
    lines = zip_longest(read_lines(text), read_lines(gold))
    for number, (sentence, facts) in enumerate(lines, 1):
        try:
            if sentence is None or facts is None:
                missing = text if sentence is None else gold
                raise Unreadable(f"{missing.name} ends before this line, so the two files do not belong together")
            if problem := sentence[2] or facts[2]:
                raise Unreadable(problem)
            yield Record(number, _parse_row(sentence[1], facts[1]))
        except Unreadable as error:
            yield Malformed(number, str(error))
            if sentence is None or facts is None:
                return


def _parse_row(sentence: str, facts: str) -> dict[str, Any]:
    fields = facts.split("\t")
    if len(fields) != len(GOLD):
        raise Unreadable(f"it has {len(fields)} fields, but there are {len(GOLD)}: {', '.join(GOLD)}")
    row = dict(zip(GOLD, fields, strict=True))
    words = [word for word in sentence.split() if word != END]
    verb, index = row["verb"], parse_count(row, "verb_index")
    before = words_before(words, index)
    if words[index].lower() != verb.lower():
        raise Unreadable(f"word {index} of the sentence is {words[index]!r}, not the verb {verb!r}")
    return {
        "words": before,
        "number": find_number(verb, row["wrong_verb"]),
        "attractors": parse_count(row, "attractors"),
        "verb": verb,
        "wrong_verb": row["wrong_verb"],
        "subject_position": None,
        "attractor_positions": None,
    }
