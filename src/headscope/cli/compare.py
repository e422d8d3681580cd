"""`headscope compare`: what differs between two measured results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headscope.core.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

SHOWN = 5  # cells of each variable


def verb(
    a: Annotated[Path, typer.Argument(help="A measured result, .nc or .zarr")],
    b: Annotated[Path, typer.Argument(help="Another one: its numbers minus the first's are shown.")],
    variable: Annotated[str | None, typer.Option(help="Only this one, such as entropy.")] = None,
    lens: Annotated[
        str | None, typer.Option(help="Only this lens; or FIRST/SECOND, such as raw/effective, one of each result.")
    ] = None,
    paired: Annotated[
        bool | None, typer.Option("--paired/--unpaired", help="Insist on pairs of examples, or do without.")
    ] = None,
    correction: Annotated[str, typer.Option(help="holm, benjamini_hochberg or none")] = "holm",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to: .nc .zarr .csv or .parquet")] = None,
) -> None:
    """Compare two measured results, head by head, corrected for many heads.

    headscope compare before.nc after.nc -o difference.nc
    """
    from headscope.results.compare import compare
    from headscope.results.stamp import read_provenance
    from headscope.results.store import open_result, save

    first, second = _of_lenses(open_result(a), open_result(b), lens)
    found = compare(first, second, variable=variable, paired=paired, correction=correction)
    console, facts = Console(highlight=False), read_provenance(found)
    kind = "paired by example" if facts["paired"] else "not paired"
    console.print(f"{b.name} minus {a.name}, {kind}, correction: {facts['correction']}\n")
    for name in _names(found):
        _summary(console, found, name, facts["level"])
    if out is not None:
        save(found, out)
        console.print(f"Wrote {out}", soft_wrap=True)


def _of_lenses(first: "xr.Dataset", second: "xr.Dataset", lens: str | None) -> "tuple[xr.Dataset, xr.Dataset]":
    """What `raw` or `raw/effective` means."""
    from headscope.plotting.selection import select_lens

    if lens is None:
        return first, second
    names = [each.strip() for each in lens.split("/")]
    if len(names) > 2 or not all(names):
        raise InputError(f"Cannot read --lens {lens!r}. Write one lens, or two as FIRST/SECOND, such as raw/effective.")
    return select_lens(first, names[0]), select_lens(second, names[-1])


def _names(found: "xr.Dataset") -> list[str]:
    return [str(name) for name in found.data_vars if f"{name}_p_adjusted" in found]


def _summary(console: Console, found: "xr.Dataset", name: str, level: float) -> None:
    """How many cells differ, and those that differ most."""
    cells = found[name].stack(cell=found[name].dims)
    sure = found[f"{name}_significant"].stack(cell=found[name].dims).values == 1
    tested = int(found[f"{name}_p"].notnull().sum())
    sentence = f"{name}: {int(sure.sum())} of {tested} cells differ (corrected p < {level:g})"
    console.print(sentence + (f"; {cells.size - tested} could not be tested" if tested < cells.size else ""))
    order = sorted((place for place in range(cells.size) if sure[place]), key=lambda each: -abs(float(cells[each])))
    if order:
        console.print(_table(found, name, order[:SHOWN]))
        left = len(order) - SHOWN
        console.print(f"  and {left} more\n" if left > 0 else "")
    else:
        console.print()


def _table(found: "xr.Dataset", name: str, places: list[int]) -> Table:
    """The cells with the largest sure differences, largest first."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    dims = [str(dim) for dim in found[name].dims if dim not in ("layer", "head")]
    varied = [dim for dim in dims if found.sizes[dim] > 1]
    for column in ("head", *varied):
        table.add_column(column, overflow="fold")
    for column in ("difference", "95 % interval", "n", "p"):
        table.add_column(column, justify="right", no_wrap=True)
    flat = {each: found[each].stack(cell=found[name].dims) for each in _parts(name)}
    for place in places:
        value, low, high, n, p = (each[place].item() for each in flat.values())
        where = flat[name][place]
        head = f"L{where['layer'].item()}H{where['head'].item()}" if "layer" in where.coords else "–"
        labels = [str(where[dim].item()) for dim in varied]
        table.add_row(head, *labels, f"{value:+.3g}", f"{low:+.3g} … {high:+.3g}", f"{n:.0f}", _p(p))
    return table


def _parts(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high", f"{name}_n", f"{name}_p_adjusted"]


def _p(value: Any) -> str:
    return "<1e-16" if value < 1e-16 else f"{value:.1e}"
