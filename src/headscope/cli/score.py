"""`headscope score`: how good a tuned model is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headscope.cli.columns import Choices, Label, Pair, SkipMalformed, Text, read_examples

if TYPE_CHECKING:
    import xarray as xr


def verb(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR")],
    model: Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")],
    task: Annotated[str, typer.Option(help="classification, regression, choice or mlm; auto asks the model.")] = "auto",
    edit: Annotated[list[str] | None, typer.Option(help="As 'headscope list edits' names it, any number.")] = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    choices: Choices = None,
    skip_malformed: SkipMalformed = False,
    batch_size: Annotated[int, typer.Option(help="Examples at a time.")] = 32,
    max_length: Annotated[int | None, typer.Option(help="Cut texts to so many tokens; as tuned by default.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to: .nc or .zarr")] = None,
) -> None:
    """Score a tuned model, with intervals.

    headscope score glue:mrpc:dev@GLUE --model tuned -o score.nc
    """
    _score(dict(locals()))


PASSED = ("task", "edit", "batch_size", "max_length")


def _score(asked: dict[str, Any]) -> None:
    console = Console(highlight=False)
    with Console(stderr=True).status("Loading"):
        import transformers

        import headscope as hs

        transformers.utils.logging.disable_progress_bar()
        examples = read_examples(asked["data"], asked)
        model = hs.load(asked["model"], device=asked["device"])
    found = hs.score(model, examples, **{name: asked[name] for name in PASSED})
    _summary(console, found)
    if asked["out"] is not None:
        hs.save(found, asked["out"])
        console.print(f"Wrote {asked['out']}", soft_wrap=True)


def _summary(console: Console, found: "xr.Dataset") -> None:
    """One line for each metric."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("metric")
    for name in ("value", "95 % interval", "n"):
        table.add_column(name, justify="right")
    names = [str(name) for name in found.data_vars if f"{name}_low" in found]
    for name in names:
        value, low, high = (float(found[each]) for each in (name, f"{name}_low", f"{name}_high"))
        table.add_row(name, f"{value:.4g}", f"{low:.4g} … {high:.4g}", f"{int(found['n']):,}")
    console.print(table)
    if "majority" in found:
        console.print(f"Always giving the most common label would be right in {float(found['majority']):.1%}.")
