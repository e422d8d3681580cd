"""Shell options for the columns of a data file, shared by all verbs that read one."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

Text = Annotated[str | None, typer.Option("--text", help="Column with the text.")]
Pair = Annotated[str | None, typer.Option("--pair", help="Column with the second text.")]
Label = Annotated[str | None, typer.Option("--label", help="Column with the label.")]
Choices = Annotated[list[str] | None, typer.Option("--choices", help="Column with a choice; may be repeated.")]
SkipMalformed = Annotated[bool, typer.Option("--skip-malformed", help="Skip and count rows that cannot be read.")]

NAMES = ("text", "pair", "label", "choices")


def read_examples(source: str, options: Mapping[str, Any]) -> Any:
    """Read the examples of a source by those of the options that name columns."""
    import headscope as hs

    columns: dict[str, Any] = {name: options[name] for name in NAMES if options.get(name)}
    return hs.read(source, malformed="skip" if options.get("skip_malformed") else "error", **columns)
