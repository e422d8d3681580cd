"""`headscope probe`: what attention knows of syntax and coreference."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library, make_table
from headscope.cli.shared.options import (
    Device,
    Dtype,
    Edits,
    Limit,
    MaxLength,
    Model,
    add_options,
    column_options,
    complete_from,
    read_examples,
)
from headscope.cli.shared.output import FigureOut, Force, check_figure_out, write_result
from headscope.core.lens import DEFAULT_LENS
from headscope.core.prose import count_noun, format_signed

if TYPE_CHECKING:
    import xarray as xr


@add_options(column_options)
def verb(
    data: Annotated[str, typer.Argument(help="A treebank (.conllu) or another file with what the probe needs.")],
    probe: Annotated[
        str, typer.Option(help="A probe, see 'headscope list probes'.", autocompletion=complete_from("probes"))
    ] = "dependency",
    model: Model = None,
    train: Annotated[
        str | None, typer.Option(help="Data to choose or train on. Default: half of the documents.")
    ] = None,
    lens: Annotated[
        str | None,
        typer.Option(
            help=f"The attention that the probe reads. Default: {DEFAULT_LENS}.", autocompletion=complete_from("lenses")
        ),
    ] = None,
    query: Annotated[str, typer.Option(help="Attention from a split word: mean of its tokens, or first.")] = "mean",
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="Fit it also to the model with random weights.")
    ] = False,
    edit: Edits = None,
    site: Annotated[str | None, typer.Option(help="encoder or decoder, for encoder-decoder models.")] = None,
    limit: Limit = None,
    seed: Annotated[int, typer.Option(help="Random seed of --limit, the halves and --random-weights.")] = 0,
    batch_size: Annotated[int | None, typer.Option(help="Number of texts per batch. Default: 4,096 tokens.")] = None,
    max_length: MaxLength = None,
    device: Device = None,
    dtype: Dtype = None,
    out: FigureOut = None,
    force: Force = False,
    **columns: Any,
) -> None:
    """Fit a probe to the attention between words, on half of the documents, and report on the others.

    headscope probe trees.conllu --probe dependency -o relations.nc -o relations.pdf
    """
    _probe({**locals(), **columns})


def _probe(options: dict[str, Any]) -> None:
    """Load, read, fit, print and write."""
    check_figure_out(options["out"], overwrite=options["force"])
    with load_library() as hs:
        examples = read_examples(options["data"], options)
        train = None if options["train"] is None else read_examples(options["train"], options)
        model = hs.load(options["model"], device=options["device"], dtype=options["dtype"])
    names = ("query", "random_weights", "edit", "site", "limit", "seed", "batch_size", "max_length")
    chosen = {name: options[name] for name in names}
    chosen |= {} if options["lens"] is None else {"lens": options["lens"]}
    result = hs.probe(model, examples, options["probe"], train=train, **chosen)
    _print(Console(highlight=False), result)
    write_result(result, lambda: hs.draw(result), options["out"], overwrite=options["force"])


def _print(console: Console, result: "xr.Dataset") -> None:
    """Print the probe and its first baseline for each group of words, and the control task below."""
    from headscope.results.probe_table import make_probe_table
    from headscope.results.stamp import read_provenance

    frame = make_probe_table(result)
    first, second = (str(name).replace("_", " ") for name in result["predictor"].values[:2])
    heads = ("best head",) if "best head" in frame else ()
    table = make_table(
        str(frame.index.name), *("best" for _ in heads), numbers=("n", first, "95 %", "baseline", "gain", "p")
    )
    for name, row in frame.iterrows():
        interval = f"{row[f'{first}_low']:.3f}–{row[f'{first}_high']:.3f}"
        numbers = [f"{row['n']:,}", f"{row[first]:.3f}", interval, f"{row[second]:.3f}"]
        table.add_row(str(name), *(row[list(heads)]), *numbers, format_signed(row["gain"], "+.3f"), _format_p(row["p"]))
    console.print(table)
    documents = count_noun(int(result["documents"]), "document")
    read = f"Of {read_provenance(result)['lens']} attention, on {documents}."
    console.print(f"{read} Baseline: {second}. {_describe_others(result)}", soft_wrap=True)


def _format_p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _describe_others(result: "xr.Dataset") -> str:
    """Return the other baselines and the control task, of all words, in a sentence."""
    from headscope.results.probe_table import make_probe_table

    frames = {str(task): make_probe_table(result, str(task)).iloc[0] for task in result["task"].values}
    first, second, *others = (str(name).replace("_", " ") for name in result["predictor"].values)
    whole, *controls = frames.items()
    parts = [f"{name} {whole[1][name]:.3f}" for name in others]
    parts += [f"{task}: {row[first]:.3f}, {second} {row[second]:.3f}" for task, row in controls]
    return f"All words: {'; '.join(parts)}." if parts else ""
