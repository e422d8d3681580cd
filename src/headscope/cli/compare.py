"""`headscope compare`: differences between two measured results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import add_options, select_options
from headscope.cli.shared.result_tables import print_result
from headscope.core.errors import InputError
from headscope.results.options import CompareOptions, SaveOptions

if TYPE_CHECKING:
    import xarray as xr


@add_options(CompareOptions, SaveOptions)
def command(
    a: Annotated[Path, typer.Argument(help="A measured result, .nc or .zarr.")],
    b: Annotated[Path, typer.Argument(help="A second result; differences are second minus first.")],
    lens: Annotated[
        str | None,
        typer.Option(help="Compare only this lens, or FIRST/SECOND, such as raw/effective, one of each result."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc .zarr .csv or .parquet.")] = None,
    **options: Any,
) -> None:
    """Compare two measured results head by head, with corrected p-values.

    headscope compare before.nc after.nc -o difference.nc
    """
    from headscope.core.provenance import read_provenance
    from headscope.results.compare import compare
    from headscope.results.store import open_result, refuse_existing, save

    refuse_existing(out, overwrite=options["force"])
    first, second = _select_lenses(open_result(a), open_result(b), lens)
    result = compare(first, second, **select_options(options, CompareOptions))
    console, facts = Console(highlight=False), read_provenance(result)
    pairing = "paired by example" if facts["paired"] else "not paired"
    console.print(f"{b.name} minus {a.name}, {pairing}, correction: {facts['correction']}\n")
    print_result(console, result, sections=None)
    if out is not None:
        save(result, out, overwrite=options["force"])
        console.print(f"Wrote {out}", soft_wrap=True)


def _select_lenses(first: "xr.Dataset", second: "xr.Dataset", lens: str | None) -> "tuple[xr.Dataset, xr.Dataset]":
    """Select the lenses of both results, from `raw` or `raw/effective`."""
    from headscope.plotting.selection import select_lens

    if lens is None:
        return first, second
    names = [name.strip() for name in lens.split("/")]
    if len(names) > 2 or not all(names):
        raise InputError(f"Cannot read --lens {lens!r}. Write one lens, or two as FIRST/SECOND, such as raw/effective.")
    return select_lens(first, names[0]), select_lens(second, names[-1])
