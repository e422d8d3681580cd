"""`headscope draw`: a figure from a saved result."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headscope.core.errors import InputError
from headscope.plotting.draw import draw
from headscope.results.store import open_result, save

SETTINGS = {"context_settings": {"ignore_unknown_options": True}}


def verb(
    result: Annotated[
        Path, typer.Argument(help="A result saved as .nc, for example by: headscope show TEXT -o maps.nc")
    ],
    figure: Annotated[str, typer.Argument(help="A figure, as 'headscope list figures' names it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to: .pdf .svg .png or .html")],
    parameters: Annotated[list[str] | None, typer.Argument(help="The figure's own: --layer 3 --head 7")] = None,
) -> None:
    """Draw a figure from a saved result, without the model that it came from."""
    picture = draw(open_result(result), figure, **_options(parameters or []))
    save(picture, out)
    typer.echo(f"Wrote {out}")


def _options(words: list[str]) -> dict[str, Any]:
    """`--layer 3 --colour=share` as parameters of the figure."""
    options: dict[str, Any] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not (equals or waiting):
            raise InputError(f"Cannot read {word!r}. Write the figure's parameters as --name value.")
        options[name.replace("-", "_")] = value if equals else waiting.pop(0)
    return options
