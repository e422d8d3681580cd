"""`headscope merge`: the shards of one measurement, put together."""

from pathlib import Path
from typing import Annotated

import typer


def verb(
    states: Annotated[list[Path], typer.Argument(help="The .state files of all shards.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to: .nc .zarr .csv or .parquet")],
) -> None:
    """Put the shards of one measurement together.

    headscope merge s*.state -o heads.nc
    """
    from headscope.measuring.merge import merge
    from headscope.results.store import save

    found = merge(*states)
    save(found, out)
    typer.echo(f"Wrote {out}: {len(states)} shards")
