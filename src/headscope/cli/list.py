"""`headscope list`: what there is, by name."""

from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headscope.core.catalog import catalogs
from headscope.core.errors import unknown_name
from headscope.core.spec import default_value, format_value


def verb(
    what: Annotated[
        str | None, typer.Argument(help="lenses, statistics, edits, figures, readers, studies or families.")
    ] = None,
) -> None:
    """List lenses, statistics, edits, figures, readers, studies and families, with their parameters."""
    if what is not None and what not in catalogs:
        raise unknown_name("catalog", what, catalogs)
    console = Console(highlight=False)
    for folder in [what] if what else catalogs:
        table = Table(title=folder, box=None, title_justify="left", padding=(0, 2, 0, 0))
        for column in ("name", "model types" if folder == "families" else "parameters", "what it is"):
            table.add_column(column, overflow="fold")
        for name in catalogs[folder].names():
            kind = catalogs[folder].find(name)
            table.add_row(name, _parameters(kind), first_sentence(kind))
        console.print(table)
        console.print()


def first_sentence(kind: type) -> str:
    """What an entry says of itself."""
    return (kind.__doc__ or "").strip().splitlines()[0]


def _parameters(kind: Any) -> str:
    if is_dataclass(kind):
        return ", ".join(f"{each.name}={format_value(default_value(each))}" for each in fields(kind))
    return ", ".join(getattr(kind, "kinds", ()))
