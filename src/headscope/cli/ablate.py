"""`headscope ablate`: score a model without each of its heads."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.console import load_library, make_table
from headscope.cli.options import (
    Choices,
    Device,
    Dtype,
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
    complete_from,
    read_examples,
)

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
Task = Annotated[str, typer.Option("--task", help="The task of the model's head. auto: inferred from the model.")]


def verb(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR.")],
    model: Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")],
    edit: HeadEdit = "zero_heads",
    sets: Sets = None,
    site: Site = None,
    task: Task = "auto",
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
    """Score a model without each of its heads, with paired tests.

    headscope ablate glue:sst2:dev@GLUE --model tuned -o ablation.nc -o ablation.pdf
    """
    columns = dict(locals())
    check_figure_out(out, overwrite=force)
    with load_library() as hs:
        from headscope.core.example import sample_examples

        examples = sample_examples(read_examples(data, columns), limit, seed)
        loaded = hs.load(model, device=device, dtype=dtype)
    sizes = {"batch_size": batch_size, "max_length": max_length}
    result = hs.ablate(loaded, examples, edit=edit, sets=_read_sets(sets), site=site, task=task, **sizes)
    console = Console(highlight=False)
    _print_summary(console, result)
    for path in out or []:
        hs.save(result if path.suffix.lower() == ".nc" else hs.draw(result), path, overwrite=force)
        console.print(f"Wrote {path}", soft_wrap=True)


def _read_sets(sets: list[str] | None) -> Any:
    """Return the kind of sets that is named, every head by default, or else a list of selections."""
    from headscope.ablation.head_sets import KINDS

    named = [name.replace("-", "_") for name in sets or ["heads"]]
    return named[0] if len(named) == 1 and named[0] in KINDS else sets


def _print_summary(console: Console, data: "xr.Dataset") -> None:
    """Print the sets with the largest changes, and how many changes are significant."""
    import numpy as np

    from headscope.results.stack_sets import stack_sets

    name, number = data["score"].attrs["long_name"], f"{int(data['n']):,}"
    flat = stack_sets(data)
    table = make_table("heads", numbers=("change", "95 % interval", "p, adjusted", name))
    order = np.argsort(-np.abs(flat["change"].values), kind="stable")
    for row in (flat.isel(set=place) for place in order[:SHOWN]):
        ends = f"{float(row['change_low']):+.4f} … {float(row['change_high']):+.4f}"
        p = f"{float(row['change_p_adjusted']):.2g}"
        table.add_row(str(row["set"].values), f"{float(row['change']):+.4f}", ends, p, f"{float(row['ablated']):.4g}")
    low, high = float(data["score_low"]), float(data["score_high"])
    console.print(f"The whole model: {name} {float(data['score']):.4g} ({low:.4g} … {high:.4g}), n = {number}.")
    console.print(table)
    total, significant = flat.sizes["set"], int(flat["change_significant"].sum())
    shown = f"The {SHOWN} largest changes of {total}. " if total > SHOWN else ""
    console.print(f"{shown}{significant} of {total} changes are significant (p < 0.05 after Holm's correction).")
