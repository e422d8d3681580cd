"""`headscope report`: a report from saved results."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headscope.cli.shared.options import add_options, select_options
from headscope.reporting.options import ReportOptions


@add_options(ReportOptions, also=("out",))
def command(
    results: Annotated[list[Path], typer.Argument(help="Saved results: .nc or .zarr.")], **options: Any
) -> None:
    """Write a report of saved results: a page with tables, figures and references.

    headscope report heads.nc difference.nc -o report
    """
    from headscope.reporting.report import report

    typer.echo(f"Wrote {report(results, options['out'], **select_options(options, ReportOptions))}")
