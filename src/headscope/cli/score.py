"""`headscope score`: score a tuned model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import make_table
from headscope.cli.shared.options import Edits, PadTo, add_options
from headscope.cli.shared.output import print_path
from headscope.cli.shared.scored_model import load_inputs, scoring_options, scoring_template

if TYPE_CHECKING:
    import xarray as xr


@add_options(scoring_template, without=("limit", "seed", "out"))
def verb(
    edit: Edits = None,
    pad_to: PadTo = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc or .zarr.")] = None,
    **shared: Any,
) -> None:
    """Score a tuned model, with confidence intervals.

    headscope score glue:mrpc:dev@GLUE --model tuned -o score.nc
    """
    from headscope.results.store import refuse_existing

    refuse_existing(out, overwrite=shared["force"])
    hs, model, examples = load_inputs(shared)
    result = hs.score(model, examples, edit=edit, pad_to=pad_to, **scoring_options(shared))
    console = Console(highlight=False)
    _print_summary(console, result)
    if out is not None:
        hs.save(result, out, overwrite=shared["force"])
        print_path(out)


def _print_summary(console: Console, data: "xr.Dataset") -> None:
    """Print one line per metric."""
    table = make_table("metric", numbers=("value", "95 % interval", "n"))
    names = [str(name) for name in data.data_vars if f"{name}_low" in data]
    for name in names:
        value, low, high = (float(data[part]) for part in (name, f"{name}_low", f"{name}_high"))
        table.add_row(name, f"{value:.4g}", f"{low:.4g} … {high:.4g}", f"{int(data['n']):,}")
    console.print(table)
    if "majority" in data:
        console.print(f"Accuracy of always predicting the most common label: {float(data['majority']):.1%}.")
