"""Lenses, statistics, edits and studies for the browser: their parameters as controls, and what it chose as specs."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headscope.core.catalog import Catalog, edits, lenses, readers, statistics, studies
from headscope.core.errors import InputError
from headscope.core.lens import DEFAULT_LENSES, Lens
from headscope.core.spec import default_value, entry_fields, format_value, to_spec

EDITS = ("zero_heads", "uniform_heads")
"""Edits that switch heads off and need no file."""

PLAIN = re.compile(r"[\w+-]{1,64}|-?\d{0,12}\.?\d{1,12}(?:e-?\d{1,3})?")
"""What a parameter may be: a word or a number, which is no path and no spec in a spec."""

FILES = ("dev", "train")
"""Parameters of studies that are data files."""

HEADS = re.compile(r"(?:\w{1,40}\.)?L\d{1,4}H\d{1,4}")
MAX_OFF = 512


def describe_catalog() -> dict[str, Any]:
    """Return what can be chosen: entries with a sentence and their parameters."""
    through = ("rollout", "flow", "relevance", "gradient", "logit")
    inner = [lens for lens in lenses.names() if lens not in through]
    return {
        "lenses": [
            {
                **describe_entry(lenses, name, inner),
                "gradient": _needs_gradient(name),
                "default": name in DEFAULT_LENSES,
            }
            for name in lenses.names()
        ],
        "statistics": [describe_entry(statistics, name, inner) for name in statistics.names()],
        "edits": [describe_entry(edits, name, inner) for name in EDITS],
        "studies": [describe_study(name) for name in studies.names()],
        "datasets": list_bundled(),
    }


def list_bundled() -> list[str]:
    """Return the names of data that come with headscope."""
    return ["sample", *(name for name in readers.names() if is_bundled(name))]


def is_bundled(name: str) -> bool:
    """Whether the data of a reader come with headscope, and its name alone reads them."""
    kind: Any = readers.find(name)
    needed = [item for item in entry_fields(kind) if default_value(item) is MISSING]
    return bool(kind.bundled or not kind.needs_path) and not needed and name != "hub"


def describe_entry(catalog: Catalog, name: str, inner: list[str]) -> dict[str, Any]:
    """Return the name of an entry, the first sentence of its documentation, and its parameters."""
    kind = catalog.find(name)
    hints = get_type_hints(kind)
    shown = [_describe_field(item, hints[item.name], inner) for item in (fields(kind) if is_dataclass(kind) else ())]
    return {"name": name, "about": first_sentence(kind), "parameters": [field for field in shown if field is not None]}


def describe_study(name: str) -> dict[str, Any]:
    """Return a study with its parameters that are numbers, switches that are off at first, or data files."""
    described = describe_entry(studies, name, [])
    files = [{**field, "type": "file"} for field in described["parameters"] if field["name"] in FILES]
    kinds = ("int", "float", "bool")  # a switch of the shell only switches on
    plain = [item for item in described["parameters"] if item["type"] in kinds and item["default"] != "true"]
    return {**described, "parameters": [*files, *plain]}


def first_sentence(kind: type) -> str:
    """Return the first paragraph of a docstring up to its first full stop.

    >>> first_sentence(InputError)
    'An argument or its data cannot be used.'
    """
    paragraph = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s+(?=[A-Z`])", paragraph)[0].replace("`", "")


def _describe_field(item: "Field[Any]", hint: Any, inner: list[str]) -> dict[str, Any] | None:
    """Return a control for a parameter; None for one that only Python can give."""
    optional = get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)
    hint = _first_type(hint)
    kind, choices = _find_control(hint, inner)
    if kind is None or not item.metadata.get("shell", True):
        return None
    default = default_value(item)
    known = default is not MISSING and default is not None
    text = (to_spec(default) if isinstance(default, Lens) else format_value(default)) if known else ""
    facts = {"name": item.name, "type": kind, "choices": choices, "default": text}
    return {**facts, "optional": optional or default is None, "about": str(item.metadata.get("help", ""))}


def _first_type(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(option for option in get_args(hint) if option is not type(None))
    return hint


def _find_control(hint: Any, inner: list[str]) -> tuple[str | None, list[str] | None]:
    if get_origin(hint) is Literal:
        return "choice", list(map(str, get_args(hint)))
    if isinstance(hint, type) and issubclass(hint, Lens):
        return "choice", inner
    if get_origin(hint) is tuple:
        return "list", None
    names = {bool: "bool", int: "int", float: "float", str: "text"}
    return (names.get(hint), None) if isinstance(hint, type) else (None, None)


def make_spec(catalog: Catalog, chosen: Any) -> str:
    """Return the spec of what the browser chose, {"name": …, "parameters": {…}}, after checking all of it."""
    if not isinstance(chosen, Mapping) or not isinstance(chosen.get("name"), str):
        raise InputError(f"A {catalog.kind} is chosen by its name and parameters, but got {str(chosen)[:80]!r}.")
    name, given = chosen["name"], chosen.get("parameters") or {}
    if name not in catalog.names():
        catalog.find(name[:80])  # says which there are
        raise InputError(f"The {catalog.kind} '{name[:80]}' is not offered here.")
    if not isinstance(given, Mapping):
        raise InputError(f"The parameters of '{name}' must be names with values, but got {str(given)[:80]!r}.")
    parameters = {
        str(key): check_plain(value, f"The parameter '{str(key)[:40]}' of '{name}'") for key, value in given.items()
    }
    return to_spec(catalog.make(name, **parameters))


def check_plain(value: Any, what: str) -> str:
    """Return a parameter as text; raise InputError for what might name a file."""
    text = format_value(value) if isinstance(value, bool | int | float) else value
    if not isinstance(text, str) or not PLAIN.fullmatch(text):
        raise InputError(f"{what} must be a plain word or number, but got {str(value)[:80]!r}.")
    return text


def check_heads(value: Any) -> tuple[str, ...]:
    """Return names of heads, such as L3H4 or cross.L0H1, without repetitions."""
    if not isinstance(value, list) or len(value) > MAX_OFF:
        raise InputError(f"Heads are a list of at most {MAX_OFF} names such as L3H4, but got {str(value)[:80]!r}.")
    for head in value:
        if not isinstance(head, str) or not HEADS.fullmatch(head):
            raise InputError(f"{str(head)[:80]!r} names no head. Write L3H4 for head 4 of layer 3.")
    return tuple(dict.fromkeys(value))


def _needs_gradient(name: str) -> bool:
    lens: Lens = lenses.make(name)
    return lens.needs_target
