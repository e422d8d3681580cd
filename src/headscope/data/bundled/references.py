"""What to cite, for each thing headscope does."""

import re
from importlib.resources import files

from headscope.core.catalog import catalogs
from headscope.core.errors import unknown_name
from headscope.core.spec import canonical_name


def read_bibtex(name: str) -> str:
    """The BibTeX entries behind a lens or figure, behind the data, or of headscope itself.

    >>> bibtex("norm").splitlines()[0]
    '@inproceedings{kobayashi2020,'
    """
    text = (files("headscope.data.bundled") / "references.bib").read_text(encoding="utf-8")
    entries = {found[1]: found[0] for found in re.finditer(r"@\w+\{([\w-]+),\n.*?\n\}", text, re.DOTALL)}
    named = {"headscope": ("headscope",), "gap": ("webster2018",)}
    for catalog in catalogs.values():
        for each in catalog.names():
            named[each] = (*named.get(each, ()), *getattr(catalog.find(each), "cites", ()))
    known = {each: keys for each, keys in named.items() if keys}
    if canonical_name(name) not in known:
        raise unknown_name("thing to cite", name, known)
    return "\n\n".join(entries[key] for key in dict.fromkeys(known[canonical_name(name)]))
