"""`headscope list`: the entries of all catalogs."""

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.core.catalog import NO_STUDIES, catalogs
from headscope.core.catalog.listing import describe_class, list_parameters
from headscope.core.errors import unknown_name
from headscope.core.prose import join_words


def command(
    catalog: Annotated[
        str | None,
        typer.Argument(
            help=f"{join_words(catalogs, 'or')}. Default: all.",
            autocompletion=lambda incomplete: [name for name in catalogs if name.startswith(incomplete)],
        ),
    ] = None,
) -> None:
    """List the entries of a catalog, with their parameters and defaults.

    headscope list lenses
    """
    if catalog is not None and catalog not in catalogs:
        raise unknown_name("catalog", catalog, catalogs)
    console = Console(highlight=False)
    for folder in [catalog] if catalog else catalogs:
        table = Table(title=folder, box=None, title_justify="left", padding=(0, 2, 0, 0))
        for column in ("name", "model types" if folder == "families" else "parameters", "description"):
            table.add_column(column, overflow="fold")
        for name in catalogs[folder].names():
            kind = catalogs[folder].find(name)
            table.add_row(name, list_parameters(kind), describe_class(kind))
        console.print(table)
        if folder == "studies" and not table.row_count:
            console.print(escape(NO_STUDIES))
        console.print()
