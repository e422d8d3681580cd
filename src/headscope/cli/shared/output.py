"""Output files of the commands: their options, checks before a model is loaded, and writing them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.core.errors import InputError
from headscope.core.options import OVERWRITE

FigureOut = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        help="Output file: a figure (.pdf .svg .png .html; replaces another) or the numbers (.nc). May be repeated.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help=OVERWRITE)]

FIGURE_SUFFIXES = (".pdf", ".svg", ".png", ".html", ".nc")


def check_figure_out(out: Iterable[Path] | None, *, overwrite: bool) -> None:
    """Raise an error for an unknown file ending, or a file that exists, before the model is loaded."""
    from headscope.results.store import refuse_existing

    for path in out or ():
        if path.suffix.lower() not in FIGURE_SUFFIXES:
            raise InputError(f"Cannot write '{path.name}': its ending must be one of {' '.join(FIGURE_SUFFIXES)}.")
        refuse_existing(path, overwrite=overwrite)


def write_result(result: Any, draw: Callable[[], Any], out: Iterable[Path] | None, *, overwrite: bool) -> None:
    """Write the result to every .nc file of --out, and what `draw` returns to the others; say so."""
    from headscope.results.store import save

    for path in out or ():
        save(result if path.suffix.lower() == ".nc" else draw(), path, overwrite=overwrite)
        print_path(path)


def print_path(path: Path) -> None:
    """Say that a file was written."""
    Console(highlight=False).print(f"Wrote {path}", soft_wrap=True)
