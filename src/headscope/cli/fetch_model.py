"""`headscope fetch-model`: the default model, once."""

import typer
from rich.console import Console


def command() -> None:
    """Fetch the default model of hs.load() (91 MB), verify it by its hash, and say where it is.

    headscope fetch-model
    """
    from headscope.engine.default_model import fetch_default

    console = Console(stderr=True, highlight=False)
    folder = fetch_default(lambda line: console.print(line, soft_wrap=True))
    typer.echo(f"The default model is in {folder}")
