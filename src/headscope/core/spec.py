"""Catalog entries as short strings: `rollout:residual=0.3,inner=(effective:keys=paper)`."""

from dataclasses import MISSING, Field, fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words


def parse_spec(spec: str) -> tuple[str, dict[str, str]]:
    """The name and the parameters, as text, that a spec holds.

    >>> parse_spec("rollout:residual=0.3,inner=(effective:keys=paper)")
    ('rollout', {'residual': '0.3', 'inner': 'effective:keys=paper'})
    """
    name, _, rest = spec.strip().partition(":")
    parameters: dict[str, str] = {}
    for part in _split(rest, spec):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(f"Cannot read {part!r} in the spec {spec!r}. Write name:parameter=value,parameter=value.")
        value = value.strip()
        parameters[canonical_name(key)] = value[1:-1] if value.startswith("(") and value.endswith(")") else value
    return canonical_name(name), parameters


def to_spec(entry: Any) -> str:
    """The shortest spec that rebuilds this entry: its name, and what differs from its defaults."""
    changed = [
        f"{each.name}={format_value(getattr(entry, each.name))}"
        for each in fields(entry)
        if getattr(entry, each.name) != default_value(each)
    ]
    name = file_name(type(entry))
    return f"{name}:{','.join(changed)}" if changed else name


def build_entry(kind: type, name: str, parameters: dict[str, Any]) -> Any:
    """An entry of class `kind`, its parameters read from text where they are text."""
    hints = get_type_hints(kind)
    known = {each.name for each in fields(kind) if each.init}
    for key in parameters:
        if key not in known:
            raise unknown_name(f"parameter of '{name}'", key, known)
    read = {key: _read(value, hints[key], name, key) for key, value in parameters.items()}
    return kind(**read)


def check_choices(entry: Any) -> None:
    """Refuse a value outside a field's `Literal`; for use in `__post_init__`."""
    for each in fields(entry):
        hint = get_type_hints(type(entry))[each.name]
        if get_origin(hint) is Literal:
            _choose(getattr(entry, each.name), hint, file_name(type(entry)), each.name)


def canonical_name(name: str) -> str:
    """A name as files spell it; in names `-` equals `_`."""
    return name.strip().replace("-", "_")


def class_name(name: str) -> str:
    """The class that a catalog file of this name holds.

    >>> class_name("head_grid")
    'HeadGrid'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def file_name(kind: type) -> str:
    """The catalog file that holds this class, which is the entry's name."""
    return kind.__module__.rpartition(".")[2]


def _split(text: str, spec: str) -> list[str]:
    """Cut at commas that stand outside parentheses."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    if depth:
        raise InputError(f"The parentheses in the spec {spec!r} do not match.")
    return [part for part in (*parts, text[start:]) if part.strip()]


def _read(value: Any, hint: Any, name: str, key: str) -> Any:
    if not isinstance(value, str):
        return value
    if get_origin(hint) is Literal:
        return _choose(value, hint, name, key)
    if get_origin(hint) in (Union, UnionType):
        if value.lower() == "none" and type(None) in get_args(hint):
            return None
        hint = next(option for option in get_args(hint) if option is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_read(part, get_args(hint)[0], name, key) for part in value.split("+"))
    if hint is bool:
        return _choose(value.lower(), Literal["true", "false"], name, key) == "true"
    if hint in (int, float):
        try:
            return hint(value)
        except ValueError:
            wanted = "a whole number" if hint is int else "a number"
            raise InputError(f"The parameter '{key}' of '{name}' must be {wanted}, but got {value!r}.") from None
    return hint.from_spec(value) if hasattr(hint, "from_spec") else value


def _choose(value: Any, hint: Any, name: str, key: str) -> Any:
    choices = get_args(hint)
    if value not in choices:
        raise InputError(f"The parameter '{key}' of '{name}' must be {join_words(choices, 'or')}, but got {value!r}.")
    return value


def format_value(value: Any) -> str:
    """A parameter as a spec writes it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, tuple):
        return "+".join(map(format_value, value))
    return f"({to_spec(value)})" if hasattr(value, "from_spec") else str(value)


def default_value(each: "Field[Any]") -> Any:
    """What a parameter is where a spec does not say."""
    return each.default_factory() if each.default_factory is not MISSING else each.default
