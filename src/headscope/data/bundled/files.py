"""Files that come with the package: the sample data, the tagger's weights and the bibliography."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

from headscope.core.catalog import catalogs
from headscope.core.errors import unknown_name
from headscope.core.spec import canonical_name


def bundled_file(name: str) -> Traversable:
    """Return a file of this folder, also where the package is not unpacked."""
    return files("headscope.data.bundled") / name


def read_references() -> dict[str, str]:
    """Return all BibTeX entries by their keys."""
    text = bundled_file("references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0] for match in re.finditer(r"@\w+\{([\w-]+),\n.*?\n\}", text, re.DOTALL)}


def citation_keys(name: str) -> tuple[str, ...]:
    """Return the keys of the papers to cite for a catalog entry, for the data ("gap") or for headscope itself."""
    keys = {"headscope": ("headscope",), "gap": ("webster2018",)}
    for catalog in catalogs.values():
        for entry in catalog.names():
            keys[entry] = (*keys.get(entry, ()), *getattr(catalog.find(entry), "cites", ()))
    keys_by_entry = {entry: tuple(dict.fromkeys(cited)) for entry, cited in keys.items() if cited}
    if canonical_name(name) not in keys_by_entry:
        raise unknown_name("thing to cite", name, keys_by_entry)
    return keys_by_entry[canonical_name(name)]


def read_bibtex(name: str) -> str:
    """Return the BibTeX entries of `citation_keys`.

    >>> read_bibtex("norm").splitlines()[0]
    '@inproceedings{kobayashi2020,'
    """
    entries = read_references()
    return "\n\n".join(entries.get(key, key) for key in citation_keys(name))
