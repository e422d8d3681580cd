"""Shell options that several verbs share: the columns of a data file, the model and its device; completion."""

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import wraps
from typing import Annotated, Any

import typer

from headscope.core.catalog import catalogs


def complete_from(catalog: str) -> Callable[[str], list[str]]:
    """Return what completes the names of a catalog's entries in the shell."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in catalogs[catalog].names() if name.startswith(incomplete)]

    return complete


Text = Annotated[str | None, typer.Option("--text", help="Column with the text.")]
Pair = Annotated[str | None, typer.Option("--pair", help="Column with the second text.")]
Label = Annotated[str | None, typer.Option("--label", help="Column with the label.")]
Words = Annotated[str | None, typer.Option("--words", help="Column with the words, where texts are split already.")]
Id = Annotated[str | None, typer.Option("--id", help="Column with the id; 'row' numbers the rows.")]
Choices = Annotated[
    list[str] | None, typer.Option("--choices", help="Column with a choice, repeated for each; or with lists of them.")
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", help="The class of each label: worst=0,best=1, or the names in order: worst,best."),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of a text file: latin-1, cp1252, utf-16. Default: UTF-8.")
]
Malformed = Annotated[str, typer.Option("--malformed", help="Rows that cannot be read: error, or skip and count.")]

Model = Annotated[str | None, typer.Option("--model", help="A hub id or a folder. Default: a small BERT.")]
Layers = Annotated[
    list[int] | None, typer.Option("--layers", help="A layer, counted from 0. May be repeated. Default: all.")
]
Heads = Annotated[
    list[int] | None, typer.Option("--heads", help="A head, counted from 0. May be repeated. Default: all.")
]
Site = Annotated[str | None, typer.Option("--site", help="encoder, decoder or cross, for encoder-decoder models.")]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The prediction to explain: predicted, label, class=NAME, mask:word=his or next:word=mat.",
    ),
]
MaxLength = Annotated[int | None, typer.Option("--max-length", help="Truncate texts to this number of tokens.")]
PadTo = Annotated[int | None, typer.Option("--pad-to", help="Pad texts to this number of tokens.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda. Default: cuda if available.")]
Dtype = Annotated[str | None, typer.Option("--dtype", help="float32, bfloat16, float16 or float64.")]
Edits = Annotated[
    list[str] | None,
    typer.Option(
        "--edit",
        help="An edit of the model, see 'headscope list edits'. May be repeated.",
        autocompletion=complete_from("edits"),
    ),
]
Ngrams = Annotated[
    list[int] | None, typer.Option("--ngrams", help="Number of words of a cue. May be repeated. Default: 1 and 2.")
]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--patterns", help="A regular expression, or NAME=EXPRESSION, for lower-case text. May be repeated."),
]
Parts = Annotated[
    list[str] | None,
    typer.Option("--parts", help="Where to look: text, pair, choices or a column. May be repeated."),
]
Limit = Annotated[int | None, typer.Option("--limit", help="Number of examples, sampled at random. Default: all.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed of --limit.")]


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


NAMES = ("text", "pair", "label", "words", "id", "choices", "labels", "encoding")


def read_examples(source: str, options: Mapping[str, Any]) -> Any:
    """Read the examples of a source by those of the options that say how."""
    import headscope as hs

    columns: dict[str, Any] = {name: options[name] for name in NAMES if options.get(name)}
    if len(columns.get("choices", ())) == 1:
        (columns["choices"],) = columns["choices"]  # a column of lists
    return hs.read(source, malformed=options.get("malformed", "error"), **columns)


def column_options(
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    words: Words = None,
    id: Id = None,  # noqa: A002  (the column's name everywhere)
    choices: Choices = None,
    labels: Labels = None,
    encoding: Encoding = None,
    malformed: Malformed = "error",
) -> None:
    """Declare the options of reading: `add_options` reads the signature."""


def add_options(
    template: Callable[..., None], *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a template to a verb, which takes them as `**shared`; its own options come before them."""

    def add(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def extended(**options: Any) -> None:
            verb(**options)

        own = [part for part in inspect.signature(verb).parameters.values() if part.kind is not part.VAR_KEYWORD]
        shared = [part for name, part in inspect.signature(template).parameters.items() if name not in without]
        every = [part.replace(kind=part.KEYWORD_ONLY) for part in (*own, *shared)]
        parameters = sorted(every, key=lambda part: part.default is not part.empty)  # required ones first
        extended.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        extended.__annotations__ = {part.name: part.annotation for part in parameters}
        return extended

    return add
