"""Winogender: sentences with an occupation, another person, and a pronoun that refers to one of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file
from pathlib import Path
from typing import Any, ClassVar, Literal

from headscope.core.reader import Columns, Malformed, Reader, RecordTable, Unreadable
from headscope.core.spec import check_choices
from headscope.data.bundled.files import bundled_file
from headscope.data.reading.files import find_first_file
from headscope.data.reading.tab_separated import read_tab_table
from headscope.data.tokenizing.words import split_words

FILE = "all_sentences.tsv"
PRONOUNS = {
    "male": ("he", "him", "his"),
    "female": ("she", "her", "hers"),
    "neutral": ("they", "them", "their", "theirs"),
}


@dataclass(frozen=True)
class Winogender(Reader):
    """The sentences of Winogender (Rudinger et al., 2018), with male, female or neutral pronouns.

    Columns: `mentions` of the pronoun, the occupation and the other person, `anaphors` (the pronoun is the only one),
    `occupation`, `participant`, `referent`, `gender`, and `document`, the occupation: sentences of one occupation are
    alike. Without a path, the data are those that come with the package, under the MIT license (see LICENSE beside
    them).
    """

    gender: Literal["all", "male", "female", "neutral"] = "all"

    bundled: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ("rudinger2018",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:
        """Read a file, `all_sentences.tsv` in a folder, or the file of the package."""
        if path:
            file = find_first_file(path, FILE)
            return self._read(file, str(file))
        with as_file(bundled_file(f"winogender/{FILE}")) as file:
            return self._read(file, f"winogender/{FILE}")

    def _read(self, file: Path, name: str) -> RecordTable:
        """Return the rows with pronouns of the gender, and those that cannot be read."""
        table = read_tab_table(file, convert=_convert, required=("sentid", "sentence"))
        genders = tuple(PRONOUNS) if self.gender == "all" else (self.gender,)
        rows = [row for row in table.rows if isinstance(row, Malformed) or row.values["gender"] in genders]
        return RecordTable(name, rows, Columns(text="sentence", words="words", id="sentid"))


def _convert(row: dict[str, Any]) -> Mapping[str, Any]:
    """Return the sentence with its three mentions; its name is OCCUPATION.PARTICIPANT.ANSWER.GENDER.txt."""
    fields = row["sentid"].split(".")
    if len(fields) != 5 or fields[2] not in ("0", "1") or fields[3] not in PRONOUNS:
        raise Unreadable(
            f"the column 'sentid' is {row['sentid']!r}, but OCCUPATION.PARTICIPANT.ANSWER.GENDER.txt is expected, with "
            "0 or 1 and male, female or neutral"
        )
    occupation, participant, answer, gender, _ = fields
    words = tuple(row["sentence"][start:end] for start, end in split_words(row["sentence"]))
    referent = participant if answer == "1" else occupation
    named = ((PRONOUNS[gender], referent), ((occupation,), occupation), ((participant,), participant))
    heads = tuple(_find_word(words, forms) for forms, _ in named)
    return {
        **row,
        "words": words,
        "mentions": tuple((head, head, entity, "person") for head, (_, entity) in zip(heads, named, strict=True)),
        "mention_heads": heads,
        "anaphors": (0,),
        "occupation": occupation,
        "participant": participant,
        "referent": referent,
        "gender": gender,
        "document": occupation,
    }


def _find_word(words: tuple[str, ...], forms: tuple[str, ...]) -> int:
    """Return the only word that is one of these forms."""
    positions = [position for position, word in enumerate(words) if word.lower() in forms]
    if len(positions) != 1:
        raise Unreadable(f"the sentence has {len(positions)} words of {', '.join(forms)}, but 1 is expected")
    return positions[0]
