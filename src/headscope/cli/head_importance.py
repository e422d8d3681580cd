"""`headscope head-importance`: how much each head matters for a task."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import make_table
from headscope.cli.shared.options import Edits, Site, add_options
from headscope.cli.shared.output import write_result
from headscope.cli.shared.scored_model import load_inputs, scoring_options, scoring_template
from headscope.core.prose import count_noun

if TYPE_CHECKING:
    import xarray as xr

MAX_SHOWN = 10
"""Heads that are printed."""


@add_options(scoring_template)
def verb(
    reduction: Annotated[
        str, typer.Option(help="Where absolute values are taken: example, token or batch.")
    ] = "example",
    normalize: Annotated[
        str | None, typer.Option(help="layer: divide the values of each layer by their L2 norm.")
    ] = None,
    site: Site = None,
    edit: Edits = None,
    **shared: Any,
) -> None:
    """Estimate how much each head matters for a task, from gradients.

    headscope head-importance glue:mrpc:dev@GLUE --model tuned -o heads.nc -o heads.pdf
    """
    hs, model, examples = load_inputs(shared)
    options = {"reduction": reduction, "normalize": normalize, "site": site, "edit": edit}
    result = hs.head_importance(model, examples, **options, **scoring_options(shared))
    console = Console(highlight=False)
    _print_largest(console, result)
    write_result(result, lambda: hs.draw(result, "heads"), shared["out"], overwrite=shared["force"])


def _print_largest(console: Console, result: "xr.Dataset") -> None:
    """Print the most important heads, one a line."""
    flat = result.stack(unit=("layer", "head")).dropna("unit", subset=["head_importance"])
    largest = flat.sortby("head_importance", ascending=False).isel(unit=slice(MAX_SHOWN))
    total = float(flat["head_importance"].sum())
    table = make_table("head", numbers=("importance", "95 % interval", "share"))
    for index, (layer, head) in enumerate(largest["unit"].values):
        value, low, high = (float(largest[f"head_importance{end}"][index]) for end in ("", "_low", "_high"))
        share = value / total if total else float("nan")
        table.add_row(f"L{layer}H{head}", f"{value:.3g}", f"{low:.3g} … {high:.3g}", f"{share:.1%}")
    console.print(table)
    if flat.sizes["unit"] > MAX_SHOWN:
        n = int(flat["head_importance_n"].max())
        console.print(
            f"The {MAX_SHOWN} most important of {flat.sizes['unit']} heads, over {count_noun(n, 'example')}; -o "
            "heads.nc saves all."
        )
