"""How a user says in the shell what the columns of a file mean, the same for every verb that reads one."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

Text = Annotated[str | None, typer.Option("--text", help="The column that holds the text.")]
Pair = Annotated[str | None, typer.Option("--pair", help="The column that holds the second text.")]
Label = Annotated[str | None, typer.Option("--label", help="The column that holds the label.")]
Choices = Annotated[list[str] | None, typer.Option("--choices", help="A column that holds a choice, any number.")]
SkipMalformed = Annotated[
    bool, typer.Option("--skip-malformed", help="Leave out rows that cannot be read, and count them.")
]

NAMES = ("text", "pair", "label", "choices")


def read(source: str, asked: Mapping[str, Any]) -> Any:
    """The examples of a source, by the columns that were named among all that was asked."""
    import headscope as hs

    columns: dict[str, Any] = {name: asked[name] for name in NAMES if asked.get(name)}
    return hs.read(source, malformed="skip" if asked.get("skip_malformed") else "error", **columns)
