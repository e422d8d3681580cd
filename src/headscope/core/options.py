"""Options of functions, declared once: the fields of a frozen dataclass, with a type, a default and a help text.

The function's signature and docstring, and the options of the shell, are made from the same fields.
"""

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from headscope.core.errors import unknown_name

Parameters = ParamSpec("Parameters")
Options = TypeVar("Options")
Result = TypeVar("Result")

# Help texts of options that many functions share.
MODEL = "A model, as `hs.load` returns it."
ANY_MODEL = "A model, or anything that `hs.load` loads."
DATA = "Anything that `hs.read` reads: a path, glue:rte:dev@DIR, examples, texts or pairs."
SITE = "Attention site of an encoder-decoder model: encoder, decoder or cross. Default: the main one."
LAYERS = "Layers, counted from 0; negative ones from the end. Default: all."
HEADS = "Heads, counted from 0; negative ones from the end. Default: all."
TARGET = "The prediction to explain: predicted, label, class=NAME, mask:word=his or next:word=mat."
MAX_LENGTH = "Truncate texts to this number of tokens. Default: what the model can read."
PAD_TO = "Pad texts to this number of tokens. Default: the longest of the batch."
PAD_POSITIONS = "Positions of padding: model (its own), or distinct, one for each token of padding, as in BERT."
EDIT = "Edits of the model's attention while it runs, see `headscope list edits`."
LIMIT = "Number of examples, sampled at random. Default: all."
DEVICE = "cpu or cuda. Default: cuda if available."
OVERWRITE = "Replace the result that exists at the output path."
PROGRESS = "Show a progress bar on stderr."


def describe(help: str, *, flag: str | None = None, catalog: str | None = None, shell: bool = True) -> dict[str, Any]:  # noqa: A002  (the shell's own word)
    """Return the metadata of a field: `field(metadata=describe("A path."))` is an option without a default.

    Parameters
    ----------
    help
        What the option does. Names of other options are in backticks: "Random seed of `limit`."
    flag
        A second name in the shell; of a boolean option, the name that turns it off.
    catalog
        The catalog whose names the shell completes.
    shell
        False for a Python object, which the shell cannot give.
    """
    return {"help": help, "flag": flag, "catalog": catalog, "shell": shell}


def option(
    default: Any,
    help: str,  # noqa: A002
    *,
    flag: str | None = None,
    catalog: str | None = None,
    shell: bool = True,
) -> Any:
    """Return a dataclass field with a default and the metadata of `describe`."""
    return field(default=default, metadata=describe(help, flag=flag, catalog=catalog, shell=shell))


def list_options(kind: Any) -> "list[Field[Any]]":
    """Return the fields of an options class: positional ones, then its own, then those of its base classes."""
    owners = [inspect.get_annotations(owner) for owner in kind.__mro__]
    depth = {item.name: next(i for i, owner in enumerate(owners) if item.name in owner) for item in fields(kind)}
    return sorted(fields(kind), key=lambda item: (item.kw_only, depth[item.name]))


def takes_options(
    kind: Callable[Parameters, Options],
) -> Callable[[Callable[[Options], Result]], Callable[Parameters, Result]]:
    """Let a function of one options object be called with the fields of its class as parameters.

    Type checkers see the parameters, as `help` does; the docstring gets them as a section before its examples.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class DoubleOptions:
    ...     number: int = field(metadata=describe("The number."))
    >>> @takes_options(DoubleOptions)
    ... def double(options):
    ...     '''Double a number.'''
    ...     return 2 * options.number
    >>> double(3), double(number=4)
    (6, 8)
    """

    def decorate(function: Callable[[Options], Result]) -> Callable[Parameters, Result]:
        known = [item.name for item in list_options(kind)]

        @wraps(function)
        def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            for name in named:
                if name not in known:
                    raise unknown_name(f"option of hs.{function.__name__}", name, known)
            return function(kind(*arguments, **named))

        returns = inspect.signature(function).return_annotation
        signature = make_signature(kind).replace(return_annotation=returns)
        call.__signature__ = signature  # type: ignore[attr-defined]  # inspect and editors read it
        call.__doc__ = add_parameters(function.__doc__, kind)
        return call

    return decorate


def make_signature(kind: Any) -> inspect.Signature:
    """Return the signature of a function whose parameters are the fields of an options class."""
    return inspect.Signature(
        [
            inspect.Parameter(
                item.name,
                inspect.Parameter.KEYWORD_ONLY if item.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if item.default is MISSING else item.default,
                annotation=item.type,
            )
            for item in list_options(kind)
        ]
    )


def add_parameters(text: str | None, kind: Any) -> str:
    """Return a docstring with a section on the fields of an options class before its examples."""
    lines = ["Parameters", "----------"]
    for item in list_options(kind):
        lines += [item.name, textwrap.indent(textwrap.fill(item.metadata["help"], 110), "    ")]
    text = inspect.cleandoc(text or "")
    start = match.start() if (match := re.search("^>>>", text, re.MULTILINE)) else len(text)
    return "\n".join([text[:start].rstrip(), "", *lines, "", text[start:]]).rstrip() + "\n"
