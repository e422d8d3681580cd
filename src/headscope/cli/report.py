"""`headscope report`: one page from saved results."""

from pathlib import Path
from typing import Annotated

import typer


def verb(
    results: Annotated[list[Path], typer.Argument(help="Saved results, .nc or .zarr")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the page and its files.")] = Path("report"),
    title: Annotated[str | None, typer.Option(help="What stands above it.")] = None,
) -> None:
    """Make one page from saved results, with tables, figures and what to cite.

    headscope report heads.nc difference.nc -o report
    """
    from headscope.reporting.report import report

    typer.echo(f"Wrote {report(results, out, title=title)}")
