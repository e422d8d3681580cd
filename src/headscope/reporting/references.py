"""What to cite: entries of `references.bib`, as BibTeX and as a reader sees them."""

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
    """One entry: its key, its BibTeX, and a citation in HTML."""

    key: str
    bibtex: str
    citation: str


def references(names: Iterable[str]) -> list[Reference]:
    """The entries behind keys such as "sun2021" or things to cite such as "effective", each once, in that order."""
    known = read_references()
    chosen: dict[str, str] = {}
    for name in names:
        chosen |= {name: known[name]} if name in known else _of_a_thing(name, known)
    return [Reference(key, entry, citation(entry)) for key, entry in chosen.items()]


def citation(entry: str) -> str:
    """Authors, year, title and where it appeared, in HTML.

    >>> citation("@misc{x,\\n  title = {On {BERT}},\\n  author = {Doe, Jo and Roe, Al},\\n  year = {2020},\\n}")
    'Jo Doe and Al Roe (2020). <cite>On BERT</cite>.'
    """
    fields = {name.lower(): _read(value) for name, value in _FIELD.findall(entry)}
    people = [" ".join(reversed(each.split(", ", 1))) for each in fields.get("author", "").split(" and ") if each]
    who = join_words(people, empty="")
    where = next((fields[each] for each in ("journal", "booktitle", "publisher", "howpublished") if each in fields), "")
    dated = " ".join(filter(None, [html.escape(who), f"({html.escape(fields['year'])})" if "year" in fields else ""]))
    title = f"<cite>{html.escape(fields.get('title', ''))}</cite>"
    return ". ".join(filter(None, [dated, title, html.escape(where)])) + "."


def _of_a_thing(name: str, known: dict[str, str]) -> dict[str, str]:
    """What `headscope cite` prints for a lens, a figure or the data."""
    try:
        return {key: known[key] for key in citation_keys(name)}
    except UnknownName:
        raise unknown_name("reference", name, known) from None


def _read(value: str) -> str:
    r"""A field as a reader sees it.

    >>> _read(r"Mind the {GAP}, Dami{\'a}n {\L}ukasz")
    'Mind the GAP, Damián Łukasz'
    """
    value = re.sub(r"\\(['`^\"~cv])\s*\{?\\?(\w)\}?", lambda each: each[2] + _ACCENTS[each[1]], value)
    value = re.sub(r"\\(L|l|O|o|ss|ae|aa)\b\s*", lambda each: _LETTERS[each[1]], value)
    value = value.replace("\\&", "&").replace("--", "–").replace("~", " ")
    return unicodedata.normalize("NFC", re.sub(r"[{}]", "", value)).strip()
