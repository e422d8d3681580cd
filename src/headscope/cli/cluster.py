"""`headscope cluster`: heads placed and grouped by the distances between their attention."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headscope.cli.shared.console import make_table
from headscope.cli.shared.output import Force

if TYPE_CHECKING:
    import xarray as xr


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
    from headscope.results.cluster import cluster, name_distance
    from headscope.results.store import open_result, refuse_existing, save

    refuse_existing(out, overwrite=force)
    result = cluster(open_result(data), count=count, permutations=permutations, seed=seed)
    console = Console(highlight=False)
    console.print(f"Mean distance of heads within a layer and between layers, {permutations:,} permutations")
    console.print(f"({name_distance(result)})\n")
    console.print(_make_table(result))
    if out is not None:
        save(result, out, overwrite=force)
        console.print(f"\nWrote {out}", soft_wrap=True)


def _make_table(result: "xr.Dataset") -> Table:
    """Return a row for each lens."""
    table = make_table("lens", numbers=("within", "between", "difference", "p", "clusters", "silhouette", "stress"))
    for lens in result["lens"].values:
        row = result.sel(lens=lens)
        distances = [f"{float(row[name]):.3g}" for name in ("within", "between", "difference")]
        p = float(row["p"])
        shares = [f"{float(row[name]):.2f}" for name in ("silhouette", "stress")]
        table.add_row(
            str(lens), *distances, f"{p:.1e}" if p < 0.001 else f"{p:.3f}", f"{int(row['clusters'])}", *shares
        )
    return table
