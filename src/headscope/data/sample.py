"""Real paragraphs that come with the package."""

import csv
from importlib.resources import files
from types import MappingProxyType

from headscope.core.example import Example

NUMBERS = ("Pronoun-offset", "A-offset", "B-offset")
TRUTHS = ("A-coref", "B-coref")


def paragraphs() -> list[Example]:
    """A hundred snippets of Wikipedia with a pronoun and two names: every 20th row of GAP's development set.

    GAP (Webster et al., 2018) is Apache-2.0; its licence lies beside the data as GAP_LICENSE.

    >>> len(paragraphs()), paragraphs()[0].columns["Pronoun"]
    (100, 'her')
    """
    text = (files("headscope.data") / "gap_sample.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [Example(row.pop("ID"), row.pop("Text"), columns=MappingProxyType(_typed(row))) for row in rows]


def _typed(row: dict[str, str]) -> dict[str, str | int | bool]:
    return {
        name: int(value) if name in NUMBERS else value == "TRUE" if name in TRUTHS else value
        for name, value in row.items()
    }
