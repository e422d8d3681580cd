"""`headscope compare`: differences between two measured results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headscope.cli.shared.console import make_table
from headscope.cli.shared.output import Force
from headscope.core.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

MAX_CELLS = 5
"""Number of cells shown of each variable."""


def verb(
    a: Annotated[Path, typer.Argument(help="A measured result, .nc or .zarr.")],
    b: Annotated[Path, typer.Argument(help="A second result; differences are second minus first.")],
    variable: Annotated[str | None, typer.Option(help="Compare only this variable, such as entropy.")] = None,
    lens: Annotated[
        str | None,
        typer.Option(help="Compare only this lens, or FIRST/SECOND, such as raw/effective, one of each result."),
    ] = None,
    paired: Annotated[
        bool | None, typer.Option("--paired/--unpaired", help="Require pairs of examples, or do not pair examples.")
    ] = None,
    correction: Annotated[str, typer.Option(help="Correction: holm, benjamini_hochberg or none.")] = "holm",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc .zarr .csv or .parquet.")] = None,
    force: Force = False,
) -> None:
    """Compare two measured results head by head, with corrected p-values.

    headscope compare before.nc after.nc -o difference.nc
    """
    from headscope.results.compare import compare
    from headscope.results.stamp import read_provenance
    from headscope.results.store import open_result, refuse_existing, save

    refuse_existing(out, overwrite=force)
    first, second = _select_lenses(open_result(a), open_result(b), lens)
    result = compare(first, second, variable=variable, paired=paired, correction=correction)
    console, facts = Console(highlight=False), read_provenance(result)
    pairing = "paired by example" if facts["paired"] else "not paired"
    console.print(f"{b.name} minus {a.name}, {pairing}, correction: {facts['correction']}\n")
    for name in [str(name) for name in result.data_vars if f"{name}_p_adjusted" in result]:
        _print_variable(console, result, name, facts["level"])
    if out is not None:
        save(result, out, overwrite=force)
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


def _print_variable(console: Console, result: "xr.Dataset", name: str, level: float) -> None:
    """Print the number of significant cells, and those that differ most."""
    import numpy as np

    suffixes = ("", "_low", "_high", "_n", "_p", "_p_adjusted", "_significant")
    flat = result[[f"{name}{suffix}" for suffix in suffixes]].stack(cell=result[name].dims)
    size, tested = flat.sizes["cell"], int(flat[f"{name}_p"].notnull().sum())
    significant = np.flatnonzero(flat[f"{name}_significant"].values == 1)
    untested = f"; {size - tested} could not be tested" if tested < size else ""
    console.print(f"{name}: {len(significant)} of {tested} cells differ (corrected p < {level:g}){untested}")
    order = significant[np.argsort(-np.abs(flat[name].values[significant]), kind="stable")]
    if len(order):
        axes = [str(dim) for dim in result[name].dims if dim not in ("layer", "head") and result.sizes[dim] > 1]
        console.print(_make_table(flat.isel(cell=order[:MAX_CELLS]), name, axes))
    console.print(f"  and {len(order) - MAX_CELLS} more\n" if len(order) > MAX_CELLS else "")


def _make_table(flat: "xr.Dataset", name: str, axes: list[str]) -> Table:
    """Return a table of cells."""
    table = make_table("head", *axes, numbers=("difference", "95 % interval", "n", "p"))
    variables = [flat[f"{name}{suffix}"] for suffix in ("", "_low", "_high", "_n", "_p_adjusted")]
    for index in range(flat.sizes["cell"]):
        value, low, high, n, p = (variable[index].item() for variable in variables)
        cell = variables[0][index]
        head = f"L{cell['layer'].item()}H{cell['head'].item()}" if "layer" in cell.coords else "–"
        p_text = "<1e-16" if p < 1e-16 else f"{p:.1e}"
        labels = [str(cell[axis].item()) for axis in axes]
        table.add_row(head, *labels, f"{value:+.3g}", f"{low:+.3g} … {high:+.3g}", f"{n:.0f}", p_text)
    return table
