"""`headscope cite`: what to put in the bibliography."""

from typing import Annotated

import typer

from headscope.data.bundled.files import read_bibtex


def verb(name: Annotated[str, typer.Argument(help="A lens, a figure, 'gap' or 'headscope'.")] = "headscope") -> None:
    """Print the BibTeX entries behind a lens or figure, or of headscope itself."""
    typer.echo(read_bibtex(name))
