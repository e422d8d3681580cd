"""`headscope pruning-curve`: the score of a model with fewer and fewer heads."""

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
    Text,
    Words,
    check_figure_out,
    read_examples,
)
from headscope.core.errors import InputError
from headscope.core.prose import count_noun

if TYPE_CHECKING:
    import xarray as xr


def verb(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet) or glue:mrpc:dev@DIR.")],
    model: Annotated[str, typer.Option(help="The folder of a tuned model, or a hub id.")],
    by: Annotated[list[str] | None, typer.Option(help="importance (default) or random. May be repeated.")] = None,
    steps: Annotated[float, typer.Option(help="Heads per step, in percent of all.")] = 10,
    recompute: Annotated[bool, typer.Option("--recompute", help="Compute importance before each step.")] = False,
    keep: Annotated[int, typer.Option(help="Number of heads that each layer keeps.")] = 0,
    seeds: Annotated[int, typer.Option(help="Number of random orders.")] = 3,
    site: Annotated[str | None, typer.Option(help="encoder, decoder, cross or all.")] = None,
    importance_data: Annotated[str | None, typer.Option(help="Other data for the importance.")] = None,
    task: Annotated[str, typer.Option(help="The task of the model's head. auto: inferred from it.")] = "auto",
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
    max_length: Annotated[int | None, typer.Option(help="Truncate texts to this number of tokens.")] = None,
    device: Device = None,
    dtype: Dtype = None,
    out: FigureOut = None,
    force: Force = False,
) -> None:
    """Score a model with fewer and fewer heads, the least important first.

    headscope pruning-curve glue:mrpc:dev@GLUE --model tuned --by importance --by random -o curve.pdf
    """
    columns = dict(locals())
    ways = list(dict.fromkeys(by or ["importance"]))
    check_figure_out(out, overwrite=force)
    if len(ways) > 1 and any(path.suffix.lower() == ".nc" for path in out or []):
        raise InputError("A .nc file holds one curve. Give --by once, or write a figure only.")
    with load_library() as hs:
        from headscope.core.example import sample_examples

        examples = sample_examples(read_examples(data, columns), limit, seed)
        other = None if importance_data is None else read_examples(importance_data, columns)
        loaded = hs.load(model, device=device, dtype=dtype)
    names = ("steps", "keep", "site", "seeds", "task", "batch_size", "max_length")
    options = {name: columns[name] for name in names}
    ranking = {"recompute": recompute, "importance_data": other}
    curves = {}
    for way in ways:  # several ways share these options, of which a random order takes none
        own = {} if way == "random" and len(ways) > 1 else ranking
        curves[way] = hs.pruning_curve(loaded, examples, by=way, **options, **own)
    write_curves(hs, curves, out or [], force=force)


def write_curves(hs: Any, curves: "dict[str, xr.Dataset]", out: Any, *, force: bool) -> None:
    """Print the curves, and write them to files."""
    console = Console(highlight=False)
    for way, curve in curves.items():
        _print_curve(console, way, curve)
    for path in out:
        drawn = next(iter(curves.values())) if path.suffix.lower() == ".nc" else hs.draw(curves)
        hs.save(drawn, path, overwrite=force)
        console.print(f"Wrote {path}", soft_wrap=True)


def _print_curve(console: Console, way: str, curve: "xr.Dataset") -> None:
    """Print one step a line; of random orders the mean, and the least and greatest."""
    name = str(curve["score"].attrs["long_name"])
    random = "seed" in curve.dims
    table = make_table(numbers=("pruned", "heads", name, "range" if random else "95 % interval"))
    for index, share in enumerate(curve["pruned"].values):
        step = curve.isel(pruned=index)
        if random:
            low, high = float(step["score"].min()), float(step["score"].max())
        else:
            low, high = float(step["score_low"]), float(step["score_high"])
        value = f"{float(step['score'].mean()):.4g}"
        table.add_row(f"{share:.4g} %", str(int(step["count"])), value, f"{low:.4g} … {high:.4g}")
    orders = f", {count_noun(curve.sizes['seed'], 'order')}" if random else ""
    console.print(f"By {way}{orders}:")
    console.print(table)
