"""`headscope report`: a report from saved results."""

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.shared.output import Force


def verb(
    results: Annotated[list[Path], typer.Argument(help="Saved results: .nc or .zarr.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page, figures and tables.")] = Path("report"),
    title: Annotated[str | None, typer.Option(help="Title of the page. Default: the model's name.")] = None,
    force: Force = False,
) -> None:
    """Write a report of saved results: a page with tables, figures and references.

    headscope report heads.nc difference.nc -o report
    """
    from headscope.reporting.report import report

    typer.echo(f"Wrote {report(results, out, title=title, overwrite=force)}")
