"""Catalog entries as short strings: `rollout:residual=0.3,inner=(effective:keys=paper)`."""

import re
import warnings
from collections.abc import Callable, MutableMapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words

Entry = TypeVar("Entry")


def parse_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters, as text, of a spec.

    >>> parse_spec("rollout:residual=0.3,inner=(effective:keys=paper)")
    ('rollout', {'residual': '0.3', 'inner': 'effective:keys=paper'})
    """
    name, _, rest = spec.strip().partition(":")
    parameters: dict[str, str] = {}
    for assignment in _split(rest, spec):
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(
                f"Cannot read {assignment!r} in the spec {spec!r}. Write name:parameter=value,parameter=value."
            )
        value = value.strip()
        parameters[canonical_name(key)] = value[1:-1] if value.startswith("(") and value.endswith(")") else value
    return canonical_name(name), parameters


def to_spec(entry: Any) -> str:
    """Return the shortest spec of an entry: its name, and the parameters that differ from their defaults."""
    changed = [
        f"{field.name}={format_value(_like_default(getattr(entry, field.name), field))}"
        for field in entry_fields(entry)
        if getattr(entry, field.name) != default_value(field)
    ]
    name = entry_name(type(entry))
    return f"{name}:{','.join(changed)}" if changed else name


def build_entry(entry_class: type, name: str, parameters: dict[str, Any]) -> Any:
    """Build an entry of this class; parameters given as text are converted to their types."""
    hints, parameters = _find_hints(entry_class), rename_parameters(entry_class, parameters)
    field_names = {field.name for field in entry_fields(entry_class) if field.init}
    for key in parameters:
        if key not in field_names:
            raise unknown_name(f"parameter of '{name}'", key, field_names)
    return entry_class(**{key: _convert(value, hints[key], name, key) for key, value in parameters.items()})


def rename_fields(**names: str) -> Callable[[type[Entry]], type[Entry]]:
    """Let a dataclass take fields by their old names for one release, with a warning: `several="reduce"`."""

    def decorate(entry_class: type[Entry]) -> type[Entry]:
        init: Any = entry_class.__init__

        @wraps(init)
        def renamed(self: Any, *arguments: Any, **parameters: Any) -> None:
            init(self, *arguments, **rename_parameters(entry_class, parameters))

        entry_class.__init__ = renamed  # type: ignore[method-assign]  # of a dataclass, which has its own
        entry_class.old_names = names  # type: ignore[attr-defined]  # only classes with old names have it
        return entry_class

    return decorate


def rename_parameters(entry_class: type, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters by the names that the fields of a class have now; warn of old names."""
    old_names: dict[str, str] = getattr(entry_class, "old_names", {})
    for old in old_names.keys() & parameters.keys():
        message = f"{old}= of '{entry_name(entry_class)}' is now {old_names[old]}=."
        warnings.warn(message, DeprecationWarning, stacklevel=3)
    return {old_names.get(name, name): value for name, value in parameters.items()}


def check_choices(entry: Any) -> None:
    """Raise InputError for a value outside a field's `Literal`; for use in `__post_init__`."""
    hints = _find_hints(type(entry))
    for field in entry_fields(entry):
        hint = hints[field.name]
        if get_origin(hint) is Literal:
            _check_choice(getattr(entry, field.name), hint, entry_name(type(entry)), field.name)


def _find_hints(entry_class: type) -> dict[str, Any]:
    """Return the types of a class's fields, cached: finding them takes longer than building the entry."""
    if entry_class not in _HINTS:
        _HINTS[entry_class] = get_type_hints(entry_class)
    return _HINTS[entry_class]


_HINTS: MutableMapping[type, dict[str, Any]] = WeakKeyDictionary()


def canonical_name(name: str) -> str:
    """Return a name as files spell it; in names `-` equals `_`."""
    return name.strip().replace("-", "_")


def class_name(name: str) -> str:
    """Return the name of the class in a catalog file.

    >>> class_name("head_grid")
    'HeadGrid'
    """
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def entry_name(entry_class: type) -> str:
    """Return the class's name in snake case, which is the name of its entry.

    >>> from headscope.core.errors import HeadscopeError, UnknownName
    >>> entry_name(UnknownName), entry_name(HeadscopeError)
    ('unknown_name', 'headscope_error')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", entry_class.__name__).lower()


def entry_fields(entry: Any) -> "tuple[Field[Any], ...]":
    """Return the parameters of an entry or its class; one that is no dataclass has none."""
    if is_dataclass(entry):
        return fields(entry)
    entry_class = entry if isinstance(entry, type) else type(entry)
    if entry_class.__init__ is not object.__init__:  # type: ignore[misc]  # of a class, only compared
        raise InputError(
            f"The class {entry_class.__name__} has an __init__ of its own, so that its parameters are not known. Make "
            "it a dataclass: write @dataclass(frozen=True) above it, and its parameters as fields."
        )
    return ()


def _split(text: str, spec: str) -> list[str]:
    """Split at commas outside parentheses."""
    pieces, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            pieces.append(text[start:index])
            start = index + 1
    if depth:
        raise InputError(f"The parentheses in the spec {spec!r} do not match.")
    return [piece for piece in (*pieces, text[start:]) if piece.strip()]


def _convert(value: Any, hint: Any, name: str, key: str) -> Any:
    if not isinstance(value, str):
        return value
    if get_origin(hint) is Literal:
        return _check_choice(value, hint, name, key)
    if get_origin(hint) in (Union, UnionType):
        if value.lower() == "none" and type(None) in get_args(hint):
            return None
        words = [option for option in get_args(hint) if get_origin(option) is Literal]
        if any(value in get_args(option) for option in words):  # such as `float | Literal["measured"]`
            return value
        hint = next(option for option in get_args(hint) if option is not type(None))
        if words and hint in (int, float):
            return _convert_number(value, hint, name, key, " or " + join_words(get_args(words[0]), "or"))
    if get_origin(hint) is tuple:
        return tuple(_convert(item, get_args(hint)[0], name, key) for item in value.split("+"))
    if hint is bool:
        return _check_choice(value.lower(), Literal["true", "false"], name, key) == "true"
    if hint in (int, float):
        return _convert_number(value, hint, name, key)
    return hint.from_spec(value) if hasattr(hint, "from_spec") else value


def _convert_number(value: str, hint: Any, name: str, key: str, words: str = "") -> Any:
    try:
        return hint(value)
    except ValueError:
        wanted = ("a whole number" if hint is int else "a number") + words
        raise InputError(f"The parameter '{key}' of '{name}' must be {wanted}, but got {value!r}.") from None


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


def _like_default(value: Any, field: "Field[Any]") -> Any:
    """Return a whole number as a float where the default is one, so that `power=3` and `power=3.0` have one spec."""
    return float(value) if type(value) is int and isinstance(default_value(field), float) else value


def default_value(field: "Field[Any]") -> Any:
    """Return the default of a parameter."""
    return field.default_factory() if field.default_factory is not MISSING else field.default
