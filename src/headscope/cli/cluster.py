"""`headscope cluster`: heads placed and grouped by the distances between their attention."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from headscope.cli.shared.output import Force
from headscope.cli.shared.result_tables import print_result

if TYPE_CHECKING:
    pass


def verb(
    data: Annotated[Path, typer.Argument(help="A measured result with head_distance, .nc or .zarr.")],
    count: Annotated[
        int | None, typer.Option(help="Number of clusters. Default: that with the largest mean silhouette.")
    ] = None,
    permutations: Annotated[int, typer.Option(help="Permutations of the test of layers.")] = 9_999,
    seed: Annotated[int, typer.Option(help="Seed of the permutations.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc or .zarr.")] = None,
    force: Force = False,
) -> None:
    """Cluster heads by the distances between their attention, and compare layers.

    headscope measure reviews.jsonl --statistics head_distance -o heads.nc
    headscope cluster heads.nc -o clusters.nc
    headscope draw clusters.nc dendrogram -o tree.pdf
    """
    from headscope.results.cluster import cluster
    from headscope.results.store import open_result, refuse_existing, save

    refuse_existing(out, overwrite=force)
    result = cluster(open_result(data), count=count, permutations=permutations, seed=seed)
    console = Console(highlight=False)
    print_result(console, result)
    if out is not None:
        save(result, out, overwrite=force)
        console.print(f"\nWrote {out}", soft_wrap=True)
