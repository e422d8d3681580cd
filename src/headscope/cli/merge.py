"""`headscope merge`: merge the shards of one measurement."""

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.shared.output import Force
from headscope.core.prose import count_noun


def command(
    states: Annotated[list[Path], typer.Argument(help="The .state files of all shards.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .nc .zarr .csv or .parquet.")],
    force: Force = False,
) -> None:
    """Merge the shards of one measurement.

    headscope merge s*.state -o heads.nc
    """
    from headscope.measuring.merge import merge
    from headscope.results.store import refuse_existing, save

    refuse_existing(out, overwrite=force)
    save(merge(*states), out, overwrite=force)
    typer.echo(f"Wrote {out}: {count_noun(len(states), 'shard')}")
