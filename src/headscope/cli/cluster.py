"""`headscope cluster`: heads placed and grouped by the distances between their attention."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import add_options, select_options
from headscope.cli.shared.result_tables import print_result
from headscope.results.options import ClusterOptions, SaveOptions


@add_options(ClusterOptions, SaveOptions)
def command(
    data: Annotated[Path, typer.Argument(help="A measured result with head_distance, .nc or .zarr.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc or .zarr.")] = None,
    **options: Any,
) -> None:
    """Cluster heads by the distances between their attention, and compare layers.

    headscope measure reviews.jsonl --statistics head_distance -o heads.nc
    headscope cluster heads.nc -o clusters.nc
    headscope draw clusters.nc dendrogram -o tree.pdf
    """
    from headscope.results.cluster import cluster
    from headscope.results.store import open_result, refuse_existing, save

    refuse_existing(out, overwrite=options["force"])
    result = cluster(open_result(data), **select_options(options, ClusterOptions))
    console = Console(highlight=False)
    print_result(console, result)
    if out is not None:
        save(result, out, overwrite=options["force"])
        console.print(f"\nWrote {out}", soft_wrap=True)
