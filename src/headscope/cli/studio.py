"""`headscope studio`: look at attention in a browser."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import add_options
from headscope.core.errors import require_package
from headscope.studio.options import StudioOptions


@add_options(StudioOptions)
def command(
    folder: Annotated[
        Path, typer.Argument(help="Folder of results, data and models; no other file is opened.")
    ] = Path(),
    **options: Any,
) -> None:
    """Look at attention in a browser: type a text, switch heads off, open results, start measurements.

    headscope studio results --model bert-base-uncased

    The server runs on this computer, and only the address that it prints lets a browser in.
    """
    for package in ("starlette", "uvicorn"):
        require_package(package, "studio", "The studio")
    from headscope.studio.server import serve

    given = {**options, "model": tuple(options["model"] or ())}
    serve(StudioOptions(folder, **given), Console(highlight=False, soft_wrap=True, markup=False).print)
