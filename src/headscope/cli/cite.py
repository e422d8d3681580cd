"""`headscope cite`: BibTeX entries."""

from typing import Annotated

import typer

from headscope.data.bundled.files import read_bibtex


def command(
    name: Annotated[
        str, typer.Argument(help="An entry of 'headscope list', such as 'effective'; 'gap'; or 'headscope'.")
    ] = "headscope",
) -> None:
    """Print the BibTeX entries of the papers behind an entry, or of headscope.

    headscope cite effective
    """
    typer.echo(read_bibtex(name))
