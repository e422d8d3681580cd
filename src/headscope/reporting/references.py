"""References of a report: entries of `references.bib`, as BibTeX and as formatted citations."""

import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from headscope.core.errors import UnknownName, unknown_name
from headscope.core.prose import join_words
from headscope.data.bundled.files import citation_keys, read_references

_FIELD = re.compile(r"^\s*(\w+)\s*=\s*[{\"](.*)[}\"],?\s*$", re.MULTILINE)
_ACCENTS = {"'": "́", "`": "̀", "^": "̂", '"': "̈", "~": "̃", "c": "̧", "v": "̌"}
_LETTERS = {"L": "Ł", "l": "ł", "O": "Ø", "o": "ø", "ss": "ß", "ae": "æ", "aa": "å"}


@dataclass(frozen=True)
class Reference:
    """The key of an entry, its BibTeX, and a citation in HTML."""

    key: str
    bibtex: str
    citation: str


def find_references(names: Iterable[str]) -> list[Reference]:
    """Return the entries of keys such as "sun2021" or catalog entries such as "effective", each once and in order.

    A name may also be a BibTeX entry itself, as an own lens or statistic cites it.

    >>> [reference.key for reference in find_references(["sun2021", "@misc{doe2020, title = {On attention}}"])]
    ['sun2021', 'doe2020']
    """
    references = read_references()
    entries: dict[str, str] = {}
    for name in names:
        if match := re.match(r"\s*@\w+\{([^,\s]+),", name):
            entries[match[1]] = name.strip()
        else:
            entries |= {name: references[name]} if name in references else _read_entry(name, references)
    return [Reference(key, entry, format_citation(entry)) for key, entry in entries.items()]


def format_citation(entry: str) -> str:
    """Return authors, year, title and venue in HTML.

    >>> format_citation("@misc{x,\\n  title = {On {BERT}},\\n  author = {Doe, Jo and Roe, Al},\\n  year = {2020},\\n}")
    'Jo Doe and Al Roe (2020). <cite>On BERT</cite>.'
    """
    fields = {name.lower(): _read_field(value) for name, value in _FIELD.findall(entry)}
    people = [" ".join(reversed(name.split(", ", 1))) for name in fields.get("author", "").split(" and ") if name]
    who = join_words(people, empty="")
    venues = ("journal", "booktitle", "publisher", "howpublished")
    venue = next((fields[name] for name in venues if name in fields), "")
    dated = " ".join(filter(None, [html.escape(who), f"({html.escape(fields['year'])})" if "year" in fields else ""]))
    title = f"<cite>{html.escape(fields.get('title', ''))}</cite>"
    return ". ".join(filter(None, [dated, title, html.escape(venue)])) + "."


def _read_entry(name: str, references: dict[str, str]) -> dict[str, str]:
    """Return the references that `headscope cite` prints for a catalog entry or the data."""
    try:
        return {key: references[key] for key in citation_keys(name)}
    except UnknownName:
        raise unknown_name("reference", name, references) from None


def _read_field(value: str) -> str:
    r"""Return a BibTeX field as plain text.

    >>> _read_field(r"Mind the {GAP}, Dami{\'a}n {\L}ukasz")
    'Mind the GAP, Damián Łukasz'
    """
    value = re.sub(r"\\(['`^\"~cv])\s*\{?\\?(\w)\}?", lambda match: match[2] + _ACCENTS[match[1]], value)
    value = re.sub(r"\\(L|l|O|o|ss|ae|aa)\b\s*", lambda match: _LETTERS[match[1]], value)
    value = value.replace("\\&", "&").replace("--", "–").replace("~", " ")
    return unicodedata.normalize("NFC", re.sub(r"[{}]", "", value)).strip()
