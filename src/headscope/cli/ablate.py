"""`headscope ablate`: score a model without each of its heads."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import make_table
from headscope.cli.shared.options import Site, add_options, complete_from
from headscope.cli.shared.output import write_result
from headscope.cli.shared.scored_model import load_inputs, scoring_options, scoring_template

if TYPE_CHECKING:
    import xarray as xr

SHOWN = 10
"""Sets of heads in the printed table."""


HeadEdit = Annotated[
    str,
    typer.Option(
        "--edit",
        help="An edit of heads without its heads: zero_heads, uniform_heads, mean_heads:means=FILE.",
        autocompletion=complete_from("edits"),
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--sets", help="heads, layers or all_but_one; or heads such as L3H7+L0H1, repeated for each set."),
]


@add_options(scoring_template)
def verb(edit: HeadEdit = "zero_heads", sets: Sets = None, site: Site = None, **shared: Any) -> None:
    """Score a model without each of its heads, with paired tests.

    headscope ablate glue:sst2:dev@GLUE --model tuned -o ablation.nc -o ablation.pdf
    """
    hs, model, examples = load_inputs(shared)
    result = hs.ablate(model, examples, edit=edit, sets=_read_sets(sets), site=site, **scoring_options(shared))
    console = Console(highlight=False)
    _print_summary(console, result)
    write_result(result, lambda: hs.draw(result), shared["out"], overwrite=shared["force"])


def _read_sets(sets: list[str] | None) -> Any:
    """Return the kind of sets that is named, every head by default, or else a list of selections."""
    from headscope.ablation.head_sets import KINDS

    named = [name.replace("-", "_") for name in sets or ["heads"]]
    return named[0] if len(named) == 1 and named[0] in KINDS else sets


def _print_summary(console: Console, data: "xr.Dataset") -> None:
    """Print the sets with the largest changes, and how many changes are significant."""
    import numpy as np

    from headscope.results.select import stack_sets

    name, number = data["score"].attrs["long_name"], f"{int(data['n']):,}"
    flat = stack_sets(data)
    table = make_table("heads", numbers=("change", "95 % interval", "p, adjusted", name))
    order = np.argsort(-np.abs(flat["change"].values), kind="stable")
    for row in (flat.isel(set=index) for index in order[:SHOWN]):
        ends = f"{float(row['change_low']):+.4f} … {float(row['change_high']):+.4f}"
        p = f"{float(row['change_p_adjusted']):.2g}"
        table.add_row(str(row["set"].values), f"{float(row['change']):+.4f}", ends, p, f"{float(row['ablated']):.4g}")
    low, high = float(data["score_low"]), float(data["score_high"])
    console.print(f"The whole model: {name} {float(data['score']):.4g} ({low:.4g} … {high:.4g}), n = {number}.")
    console.print(table)
    total, significant = flat.sizes["set"], int(flat["change_significant"].sum())
    shown = f"The {SHOWN} largest changes of {total}. " if total > SHOWN else ""
    console.print(f"{shown}{significant} of {total} changes are significant (p < 0.05 after Holm's correction).")
