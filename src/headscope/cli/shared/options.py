"""Shell options, made from the fields of the options classes that Python functions take."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, Field
from functools import wraps
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from headscope.cli.shared.shell_words import ALIASES
from headscope.core.catalog import catalogs
from headscope.core.options import LIMIT, list_options
from headscope.core.prose import join_words
from headscope.data.reading.options import ReadOptions

Model = Annotated[str | None, typer.Option("--model", help="A hub id or a folder. Default: a small BERT.")]
Limit = Annotated[int | None, typer.Option("--limit", help=LIMIT)]
Seed = Annotated[int, typer.Option("--seed", help="Random seed of --limit.")]


def add_options(
    *kinds: Any, without: Collection[str] = (), also: Collection[str] = (), required: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the fields of options classes to a command, which takes them as `**options`, as options of the shell.

    Its own options come first. Positional fields are left out unless they are in `also`, and so are Python objects.
    """
    shared: dict[str, inspect.Parameter] = {}
    for item in (item for kind in kinds for item in list_options(kind)):
        taken = (item.kw_only or item.name in also) and item.metadata.get("shell", True)
        if taken and item.name not in without:
            parameter = make_parameter(item, item.type, required=item.name in required)
            shared.setdefault(parameter.name, parameter)

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def extended(**options: Any) -> None:
            command(**options)

        own = [item for item in inspect.signature(command).parameters.values() if item.kind is not item.VAR_KEYWORD]
        names = {item.name for item in own}
        every = [item.replace(kind=item.KEYWORD_ONLY) for item in own]
        every += [item for name, item in shared.items() if name not in names]
        parameters = sorted(every, key=lambda item: item.default is not item.empty)  # required ones first
        extended.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        extended.__annotations__ = {item.name: item.annotation for item in parameters}
        return extended

    return add


def make_parameter(
    item: "Field[Any]", hint: Any, *, required: bool = False, optional: bool = False
) -> inspect.Parameter:
    """Return the parameter of a command for a field of a type; an optional one is None where it is not given."""
    kind, name = read_type(hint), ALIASES.get(item.name, item.name)
    default: Any = item.default
    if required or item.default is MISSING:
        default = inspect.Parameter.empty
    elif optional or get_origin(kind) is list:
        default = None  # so that the default of the library holds
    catalog = item.metadata.get("catalog")
    about = typer.Option(
        *_list_flags(name, kind, item.metadata.get("flag")),
        help=_describe(item, repeated=get_origin(kind) is list, says_default=default is None),
        autocompletion=complete_from(catalog) if catalog else None,
    )
    annotation: Any = Annotated[kind | None if default is None else kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def read_type(hint: Any) -> Any:
    """Return what the shell can give for a type: the first of a union, a list for a sequence, a text for any object."""
    if get_origin(hint) in (Union, UnionType):
        return read_type(get_args(hint)[0])
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Sequence):
        return GenericAlias(list, (read_type(get_args(hint)[0]),))
    return str if hint is Any or isinstance(hint, str) else hint


def select_options(options: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Return the options that were given and that are keyword fields of an options class, by field."""
    names = [item.name for item in list_options(kind) if item.kw_only]
    named = {name: options.get(ALIASES.get(name, name)) for name in names}
    return {name: value for name, value in named.items() if value not in (None, [])}


def _list_flags(name: str, kind: Any, flag: str | None) -> list[str]:
    """Return the names of an option in the shell; the second of a boolean option turns it off."""
    first, second = (f"--{word.replace('_', '-')}" for word in (name, flag or name))
    if kind is bool:
        return [first if flag is None else f"{first}/{second}"]
    return list(dict.fromkeys([first, second, *(["-o"] if name == "out" else [])]))


def _describe(item: "Field[Any]", *, repeated: bool, says_default: bool) -> str:
    """Return the help text in the words of the shell, which shows the defaults that it has itself."""
    text = item.metadata.get("help", "")
    text = re.sub(r"`(\w+)`", lambda name: f"--{ALIASES.get(name[1], name[1]).replace('_', '-')}", text)
    text = text.replace("`", "'")
    if repeated and "repeated" not in text:
        text += " May be repeated."
    known = item.default is not False and item.default not in (None, ())
    if says_default and known and "default" not in text.lower():
        text += f" Default: {join_words(item.default if isinstance(item.default, tuple) else [item.default])}."
    return text


def complete_from(catalog: str) -> Callable[[str], list[str]]:
    """Return what completes the names of a catalog's entries in the shell."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in catalogs[catalog].names() if name.startswith(incomplete)]

    return complete


def edit_model(model: Any, edits: list[str] | None) -> AbstractContextManager[Any]:
    """The model with the edits of --edit, or as it is without any."""
    from headscope.engine.edited import edit_if_any

    return edit_if_any(model, edits)


def name_patterns(patterns: list[str] | None) -> dict[str, str]:
    """Return the expressions of --patterns by name; one without a name is called by its own text.

    >>> name_patterns(["negation=not|never", "(?=a)b"])
    {'negation': 'not|never', '/(?=a)b/': '(?=a)b'}
    """
    named: dict[str, str] = {}
    for pattern in patterns or []:
        name, equals, expression = pattern.partition("=")
        named |= {name: expression} if equals and name.isidentifier() else {f"/{pattern}/": pattern}
    return named


def read_examples(source: str, options: Mapping[str, Any]) -> Any:
    """Read the examples of a source by those of the options that say how."""
    import headscope as hs

    return hs.read(source, **_select_columns(options))


def scan_inputs(model: Any, source: str, options: Mapping[str, Any]) -> Any:
    """Return the examples of a source as a stream; for a model of images or sounds, read one of these or a folder."""
    from headscope.core.progress import show_progress
    from headscope.data.reading.scan import open_stream
    from headscope.engine.batch import read_inputs

    if model.network.main_input_name != "input_ids":
        return read_inputs(model, source)
    with show_progress(None, unit="rows counted") as advance:
        return open_stream(ReadOptions(source, **_select_columns(options)), advance)


def _select_columns(options: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: value for name, value in select_options(options, ReadOptions).items() if value != ""}
    if len(columns.get("choices", ())) == 1:
        (columns["choices"],) = columns["choices"]  # a column of lists
    return columns
