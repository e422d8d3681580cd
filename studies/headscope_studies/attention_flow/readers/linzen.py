"""The subject-verb agreement sentences of Linzen et al. (2016), in their own format."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from headscope.core.reader import Reader, RecordTable, Unreadable
from headscope.core.spec import check_choices
from headscope.data.bundled.agreement import NUMBERS
from headscope.data.reading.agreement import COLUMNS, parse_count, words_before
from headscope.data.reading.files import find_first_file
from headscope.data.reading.tab_separated import read_tab_table

VERB_NUMBERS = {"VBZ": "singular", "VBP": "plural"}
NOUN_NUMBERS = {"NN": "singular", "NNS": "plural"}
"""The nouns that the corpus counts as attractors; proper nouns are left out."""

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
"""A field that holds a quotation mark: the corpus was written as a CSV file with tabs."""

REQUIRED = ("pos_sentence", "verb", "verb_pos", "subj_index", "verb_index", "n_diff_intervening")


@dataclass(frozen=True)
class Linzen(Reader):
    """Sentences up to their verb; the label is the number of the verb (Linzen et al., 2016).

    `sentence=common` reads the column in which rare words are replaced by their part of speech, as Abnar & Zuidema
    (2020) do; `sentence=original` reads the words themselves. `attractors` is the column n_diff_intervening: nouns of
    the other number between the subject and the verb. Their positions come from the parts of speech, and are None where
    these give another number. All other columns keep their names.
    """

    sentence: Literal["common", "original"] = "common"

    cites: ClassVar[tuple[str, ...]] = ("linzen2016",)

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, path: str) -> RecordTable:
        """Read a file, or agr_50_mostcommon_10K.tsv in a folder."""
        file = find_first_file(path, "agr_50_mostcommon_10K.tsv", "agr_50.tsv")
        column = "sentence" if self.sentence == "common" else "orig_sentence"
        table = read_tab_table(file, COLUMNS, convert=partial(_convert, column), required=(column, *REQUIRED))
        return RecordTable(table.name, table.rows, COLUMNS)


def _convert(column: str, row: dict[str, Any]) -> Mapping[str, Any]:
    """Return the words before the verb; the file counts words from 1."""
    row = {name: QUOTED.sub(_unquote, text) if QUOTED.fullmatch(text) else text for name, text in row.items()}
    verb, subject = parse_count(row, "verb_index") - 1, parse_count(row, "subj_index") - 1
    words, tags = row[column].split(), row["pos_sentence"].split()
    if len(words) != len(tags):
        raise Unreadable(f"there are {len(words)} words in '{column}', but {len(tags)} in 'pos_sentence'")
    before = words_before(words, verb)
    if not 0 <= subject < verb:
        raise Unreadable(f"the subject is word {subject + 1}, but it must be before the verb, word {verb + 1}")
    if row["verb_pos"] not in VERB_NUMBERS:
        raise Unreadable(f"the column 'verb_pos' is {row['verb_pos']!r}, but VBZ or VBP is expected")
    if tags[verb] != row["verb_pos"] and words[verb] != row["verb"]:
        raise Unreadable(
            f"word {verb + 1} is {words[verb]!r} with the tag {tags[verb]}, but the verb is {row['verb']!r} with the "
            f"tag {row['verb_pos']}"
        )
    number, count = VERB_NUMBERS[row["verb_pos"]], parse_count(row, "n_diff_intervening")
    other = NUMBERS[1 - NUMBERS.index(number)]
    positions = tuple(word for word in range(subject + 1, verb) if NOUN_NUMBERS.get(tags[word]) == other)
    return row | {
        "words": before,
        "number": number,
        "attractors": count,
        "subject_position": subject,
        "attractor_positions": positions if len(positions) == count else None,
    }


def _unquote(field: re.Match[str]) -> str:
    return field[1].replace('""', '"')
