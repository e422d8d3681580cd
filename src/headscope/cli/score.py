"""`headscope score`: score a tuned model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from headscope.cli.console import load_library, make_table
from headscope.cli.options import (
    Choices,
    Device,
    Dtype,
    Edits,
    Force,
    Id,
    Label,
    Malformed,
    PadTo,
    Pair,
    Text,
    Words,
    read_examples,
)

if TYPE_CHECKING:
    import xarray as xr


def verb(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR.")],
    model: Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")],
    task: Annotated[
        str, typer.Option(help="classification, regression, choice, translation, mlm or causal. auto: from the model.")
    ] = "auto",
    edit: Edits = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    words: Words = None,
    id: Id = None,  # noqa: A002  (the column's name everywhere)
    choices: Choices = None,
    malformed: Malformed = "error",
    batch_size: Annotated[int, typer.Option(help="Number of examples per batch.")] = 32,
    max_length: Annotated[
        int | None, typer.Option(help="Truncate texts to this number of tokens. Default: as tuned.")
    ] = None,
    pad_to: PadTo = None,
    device: Device = None,
    dtype: Dtype = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc or .zarr.")] = None,
    force: Force = False,
) -> None:
    """Score a tuned model, with confidence intervals.

    headscope score glue:mrpc:dev@GLUE --model tuned -o score.nc
    """
    columns = dict(locals())
    with load_library() as hs:
        from headscope.results.store import refuse_existing

        refuse_existing(out, overwrite=force)
        examples = read_examples(data, columns)
        loaded = hs.load(model, device=device, dtype=dtype)
    sizes = {"batch_size": batch_size, "max_length": max_length, "pad_to": pad_to}
    result = hs.score(loaded, examples, task=task, edit=edit, **sizes)
    console = Console(highlight=False)
    _print_summary(console, result)
    if out is not None:
        hs.save(result, out, overwrite=force)
        console.print(f"Wrote {out}", soft_wrap=True)


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
