"""The first sentence and the papers of a catalog entry, read from its source so that a report needs no torch."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from headscope.core.catalog import catalogs
from headscope.core.errors import HeadscopeError
from headscope.core.spec import canonical_name, class_name


@dataclass(frozen=True)
class EntrySummary:
    """The first sentence of an entry's docstring, and the papers it cites."""

    sentence: str = ""
    cites: tuple[str, ...] = ()


@cache
def describe_entry(folder: str, name: str) -> EntrySummary:
    """Return the summary of an entry such as the statistic `entropy`; entries of other packages are imported.

    >>> describe_entry("lenses", "flow").cites
    ('abnar2020',)
    """
    path = files("headscope") / folder / f"{canonical_name(name)}.py"
    if path.is_file():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name(name))
        return next((_read_class(node) for node in classes), EntrySummary())
    try:
        entry = catalogs[folder].find(name)
    except HeadscopeError:
        return EntrySummary()
    return EntrySummary((entry.__doc__ or "").strip().partition("\n")[0], tuple(getattr(entry, "cites", ())))


def collect_citations(specs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the papers behind entries, given as folder and spec, each once and in order."""
    names = [(folder, spec.partition(":")[0]) for folder, spec in specs]
    return list(dict.fromkeys(key for folder, name in names for key in describe_entry(folder, name).cites))


def _read_class(node: ast.ClassDef) -> EntrySummary:
    sentence = (ast.get_docstring(node) or "").partition("\n")[0]
    for statement in node.body:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if value is not None and ast.unparse(statement).startswith(("cites =", "cites:")):
            return EntrySummary(sentence, tuple(ast.literal_eval(value)))
    return EntrySummary(sentence)
