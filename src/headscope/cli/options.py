"""Shell options that several verbs share: the columns of a data file, the model and its device; completion."""

from collections.abc import Callable, Mapping
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
Choices = Annotated[list[str] | None, typer.Option("--choices", help="Column with a choice; may be repeated.")]
SkipMalformed = Annotated[bool, typer.Option("--skip-malformed", help="Skip and count rows that cannot be read.")]

Model = Annotated[str | None, typer.Option("--model", help="A hub id or a folder. Default: a small BERT.")]
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
Force = Annotated[bool, typer.Option("--force", help="Replace what exists at the path of --out.")]

NAMES = ("text", "pair", "label", "choices")


def read_examples(source: str, options: Mapping[str, Any]) -> Any:
    """Read the examples of a source by those of the options that name columns."""
    import headscope as hs

    columns: dict[str, Any] = {name: options[name] for name in NAMES if options.get(name)}
    return hs.read(source, malformed="skip" if options.get("skip_malformed") else "error", **columns)
