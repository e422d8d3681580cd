"""What a file of a catalog says about itself, read without running it: so a report needs no torch."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from headscope.core.catalog import catalogs
from headscope.core.errors import HeadscopeError
from headscope.core.spec import canonical_name, class_name


@dataclass(frozen=True)
class About:
    """The first sentence of a thing, and the papers it comes from."""

    sentence: str = ""
    cites: tuple[str, ...] = ()


@cache
def about(folder: str, name: str) -> About:
    """What is known of a thing such as the statistic `entropy`; what other packages offer has to be imported for it.

    >>> about("lenses", "norm").cites
    ('kobayashi2020',)
    """
    path = files("headscope") / folder / f"{canonical_name(name)}.py"
    if path.is_file():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        held = (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == class_name(name))
        return next((_of_class(each) for each in held), About())
    try:
        found = catalogs[folder].find(name)
    except HeadscopeError:
        return About()
    return About((found.__doc__ or "").strip().partition("\n")[0], tuple(getattr(found, "cites", ())))


def cited(specs: Iterable[tuple[str, str]]) -> list[str]:
    """The papers behind some things, each a folder and a spec such as effective:keys=paper, in order and once."""
    names = [(folder, spec.partition(":")[0]) for folder, spec in specs]
    return list(dict.fromkeys(key for folder, name in names for key in about(folder, name).cites))


def _of_class(node: ast.ClassDef) -> About:
    """The sentence and the papers, where they are written plainly."""
    sentence = (ast.get_docstring(node) or "").partition("\n")[0]
    for each in node.body:
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            target = each.targets[0] if isinstance(each, ast.Assign) else each.target
            if isinstance(target, ast.Name) and target.id == "cites":
                return About(sentence, tuple(ast.literal_eval(each.value)))
    return About(sentence)
