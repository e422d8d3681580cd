"""List the entries of a catalog from Python."""

import html
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from headscope.core import catalog
from headscope.core.errors import unknown_name
from headscope.core.spec import default_value, format_value


class Listing(Mapping[str, type]):
    """The classes of a catalog by name; it shows itself as a table of names, parameters and descriptions."""

    def __init__(self, entries: catalog.Catalog) -> None:
        defined = entries.defined()
        names = sorted({*entries.names(), *defined})
        self._classes = {name: defined.get(name) or entries.find(name) for name in names}

    def __getitem__(self, name: str) -> type:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __repr__(self) -> str:
        width = max(map(len, self._classes), default=0) + 2
        lines = []
        for name, kind in self._classes.items():
            text = " ".join(
                filter(None, [describe_class(kind), f"[{part}]" if (part := list_parameters(kind)) else ""])
            )
            lines.append(textwrap.fill(text, 88, initial_indent=name.ljust(width), subsequent_indent=" " * width))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table = [(name, list_parameters(kind), describe_class(kind)) for name, kind in self._classes.items()]
        cells = ["".join(f"<td style='text-align: left'>{html.escape(cell)}</td>" for cell in row) for row in table]
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><tr><th>name</th><th>parameters</th><th>description</th></tr>{rows}</table>"


def describe_class(kind: type) -> str:
    """Return the first line of the docstring of a class."""
    return (kind.__doc__ or "").strip().partition("\n")[0]


def list_parameters(kind: Any) -> str:
    """Return the parameters of a class with their defaults, or the types of models of a family.

    >>> list_parameters(catalog.lenses.find("effective"))
    'keys=visible, values=model'
    """
    if kinds := getattr(kind, "kinds", ()):
        return ", ".join(kinds)
    parameters = fields(kind) if is_dataclass(kind) else ()
    return ", ".join(f"{field.name}={format_value(default_value(field))}" for field in parameters)


def list(what: str) -> Listing:  # noqa: A001
    """Return all entries of a catalog by name: built in, installed, and defined in this session.

    In a notebook or at the prompt it shows itself as a table of names, parameters and descriptions.

    Parameters
    ----------
    what
        The catalog: "lenses", "statistics", "probes", "importance_methods", "edits", "figures", "kinds", "readers",
        "studies" or "families".

    >>> hs.list("lenses")["norm"].__name__, "entropy" in hs.list("statistics")
    ('Norm', True)
    """
    if what not in catalog.catalogs:
        raise unknown_name("catalog", what, catalog.catalogs)
    return Listing(catalog.catalogs[what])
