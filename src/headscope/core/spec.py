"""Catalog entries as short strings: `rollout:residual=0.3,inner=(effective:keys=paper)`."""

from dataclasses import MISSING, Field, fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words


def parse_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters, as text, of a spec.

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
    """Return the shortest spec of an entry: its name, and the parameters that differ from their defaults."""
    changed = [
        f"{field.name}={format_value(getattr(entry, field.name))}"
        for field in fields(entry)
        if getattr(entry, field.name) != default_value(field)
    ]
    name = file_name(type(entry))
    return f"{name}:{','.join(changed)}" if changed else name


def build_entry(kind: type, name: str, parameters: dict[str, Any]) -> Any:
    """Build an entry of class `kind`; parameters given as text are converted to their types."""
    hints = get_type_hints(kind)
    known = {field.name for field in fields(kind) if field.init}
    for key in parameters:
        if key not in known:
            raise unknown_name(f"parameter of '{name}'", key, known)
    return kind(**{key: _convert(value, hints[key], name, key) for key, value in parameters.items()})


def check_choices(entry: Any) -> None:
    """Raise InputError for a value outside a field's `Literal`; for use in `__post_init__`."""
    for field in fields(entry):
        hint = get_type_hints(type(entry))[field.name]
        if get_origin(hint) is Literal:
            _check_choice(getattr(entry, field.name), hint, file_name(type(entry)), field.name)


def canonical_name(name: str) -> str:
    """Return a name as files spell it; in names `-` equals `_`."""
    return name.strip().replace("-", "_")


def class_name(name: str) -> str:
    """Return the name of the class in a catalog file.

    >>> class_name("head_grid")
    'HeadGrid'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def file_name(kind: type) -> str:
    """Return the name of the catalog file that defines a class, which is the entry's name."""
    return kind.__module__.rpartition(".")[2]


def _split(text: str, spec: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    if depth:
        raise InputError(f"The parentheses in the spec {spec!r} do not match.")
    return [part for part in (*parts, text[start:]) if part.strip()]


def _convert(value: Any, hint: Any, name: str, key: str) -> Any:
    if not isinstance(value, str):
        return value
    if get_origin(hint) is Literal:
        return _check_choice(value, hint, name, key)
    if get_origin(hint) in (Union, UnionType):
        if value.lower() == "none" and type(None) in get_args(hint):
            return None
        hint = next(option for option in get_args(hint) if option is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_convert(part, get_args(hint)[0], name, key) for part in value.split("+"))
    if hint is bool:
        return _check_choice(value.lower(), Literal["true", "false"], name, key) == "true"
    if hint in (int, float):
        try:
            return hint(value)
        except ValueError:
            wanted = "a whole number" if hint is int else "a number"
            raise InputError(f"The parameter '{key}' of '{name}' must be {wanted}, but got {value!r}.") from None
    return hint.from_spec(value) if hasattr(hint, "from_spec") else value


def _check_choice(value: Any, hint: Any, name: str, key: str) -> Any:
    choices = get_args(hint)
    if value not in choices:
        raise InputError(f"The parameter '{key}' of '{name}' must be {join_words(choices, 'or')}, but got {value!r}.")
    return value


def format_value(value: Any) -> str:
    """Return a parameter as a spec writes it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, tuple):
        return "+".join(map(format_value, value))
    return f"({to_spec(value)})" if hasattr(value, "from_spec") else str(value)


def default_value(field: "Field[Any]") -> Any:
    """Return the default of a parameter."""
    return field.default_factory() if field.default_factory is not MISSING else field.default
