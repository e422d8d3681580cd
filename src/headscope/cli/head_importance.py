"""`headscope head-importance`: how much each head matters for a task."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from headscope.cli.console import load_library, make_table
from headscope.cli.options import (
    Choices,
    Device,
    Dtype,
    Edits,
    FigureOut,
    Force,
    Id,
    Label,
    Limit,
    Malformed,
    Pair,
    Seed,
    Site,
    Text,
    Words,
    check_figure_out,
    read_examples,
)
from headscope.core.prose import count_noun

if TYPE_CHECKING:
    import xarray as xr

MAX_SHOWN = 10
"""Heads that are printed."""


def verb(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR.")],
    model: Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")],
    reduction: Annotated[
        str, typer.Option(help="Where absolute values are taken: example, token or batch.")
    ] = "example",
    normalize: Annotated[
        str | None, typer.Option(help="layer: divide the values of each layer by their L2 norm.")
    ] = None,
    site: Site = None,
    task: Annotated[str, typer.Option(help="The task of the model's head. auto: inferred from the model.")] = "auto",
    edit: Edits = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    words: Words = None,
    id: Id = None,  # noqa: A002  (the column's name everywhere)
    choices: Choices = None,
    malformed: Malformed = "error",
    limit: Limit = None,
    seed: Seed = 0,
    batch_size: Annotated[int, typer.Option(help="Number of examples per batch.")] = 32,
    max_length: Annotated[
        int | None, typer.Option(help="Truncate texts to this number of tokens. Default: as tuned.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    out: FigureOut = None,
    force: Force = False,
) -> None:
    """Estimate how much each head matters for a task, from gradients.

    headscope head-importance glue:mrpc:dev@GLUE --model tuned -o heads.nc -o heads.pdf
    """
    columns = dict(locals())
    check_figure_out(out, overwrite=force)
    with load_library() as hs:
        from headscope.core.example import sample_examples

        examples = sample_examples(read_examples(data, columns), limit, seed)
        loaded = hs.load(model, device=device, dtype=dtype)
    options = {"reduction": reduction, "normalize": normalize, "site": site, "task": task, "edit": edit}
    result = hs.head_importance(loaded, examples, **options, batch_size=batch_size, max_length=max_length)
    console = Console(highlight=False)
    _print_largest(console, result)
    for path in out or []:
        hs.save(result if path.suffix.lower() == ".nc" else hs.draw(result, "heads"), path, overwrite=force)
        console.print(f"Wrote {path}", soft_wrap=True)


def _print_largest(console: Console, result: "xr.Dataset") -> None:
    """Print the most important heads, one a line."""
    flat = result.stack(place=("layer", "head")).dropna("place", subset=["head_importance"])
    order = flat.sortby("head_importance", ascending=False).isel(place=slice(MAX_SHOWN))
    share = flat["head_importance"].sum()
    table = make_table("head", numbers=("importance", "95 % interval", "share"))
    for index in range(order.sizes["place"]):
        layer, head = order["place"].values[index]
        value, low, high = (float(order[f"head_importance{end}"][index]) for end in ("", "_low", "_high"))
        part = value / float(share) if share else float("nan")
        table.add_row(f"L{layer}H{head}", f"{value:.3g}", f"{low:.3g} … {high:.3g}", f"{part:.1%}")
    console.print(table)
    if flat.sizes["place"] > MAX_SHOWN:
        n = int(flat["head_importance_n"].max())
        console.print(
            f"The {MAX_SHOWN} most important of {flat.sizes['place']} heads, over {count_noun(n, 'example')}; -o "
            "heads.nc saves all."
        )
