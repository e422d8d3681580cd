"""`headscope probe`: what attention knows of syntax and coreference."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
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
from headscope.cli.shared.result_tables import print_result
from headscope.core.lens import DEFAULT_LENS


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
    print_result(Console(highlight=False), result, rows=40, sections=None)
    write_result(result, lambda: hs.draw(result), options["out"], overwrite=options["force"])
