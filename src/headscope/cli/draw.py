"""`headscope draw`: a figure from a saved result."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headscope.cli.shared.options import complete_from
from headscope.cli.shared.output import Force
from headscope.core.errors import InputError

SETTINGS = {"context_settings": {"ignore_unknown_options": True}}


def command(
    result: Annotated[Path, typer.Argument(help="A saved result, for example from: headscope show TEXT -o maps.nc")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .pdf .svg .png or .html.")],
    figure: Annotated[
        str | None,
        typer.Argument(
            help="A figure, see 'headscope list figures'. Default: one that fits the result.",
            autocompletion=complete_from("figures"),
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Argument(help="Parameters of the figure, such as --layer 3 --head 7.")
    ] = None,
    force: Force = False,
) -> None:
    """Draw a figure from a saved result, without loading the model.

    headscope draw maps.nc compare --layer 3 --head 7 -o compare.pdf
    """
    from headscope.plotting.draw import draw
    from headscope.results.store import open_result, refuse_existing, save

    refuse_existing(out, overwrite=force)
    words = [*([figure] if figure else []), *(parameters or [])]
    named = words.pop(0) if words and not words[0].startswith("-") else None
    picture = draw(open_result(result), named, **_read_parameters(words))
    save(picture, out, overwrite=force)
    typer.echo(f"Wrote {out}")


def _read_parameters(words: list[str]) -> dict[str, Any]:
    """Return `--layer 3 --colour=share` as parameters of the figure."""
    parameters: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not (equals or rest):
            raise InputError(f"Cannot read {word!r}. Write the figure's parameters as --name value.")
        parameters[name.replace("-", "_")] = value if equals else rest.pop(0)
    return parameters
