"""`headscope importances`: how much each word of a text matters for a prediction."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import (
    NAMES,
    Device,
    Dtype,
    Edits,
    Limit,
    MaxLength,
    Model,
    Seed,
    add_options,
    column_options,
    complete_from,
    edit_model,
    read_examples,
)
from headscope.cli.shared.output import FigureOut, Force, check_figure_out, write_result

if TYPE_CHECKING:
    import headscope as hs

MAX_SHOWN = 10
"""Texts that are printed."""


@add_options(column_options, without=("choices",))
def verb(
    data: Annotated[str, typer.Argument(help="A text, a file (.jsonl .json .csv .tsv .txt) or glue:sst2:dev@DIR.")],
    model: Model = None,
    method: Annotated[
        str,
        typer.Option(
            help="A method, see 'headscope list importance_methods'.",
            autocompletion=complete_from("importance_methods"),
        ),
    ] = "blank_out",
    target: Annotated[
        str, typer.Option(help="What is explained: predicted, label, class=NAME, mask:word=his or next:word=mat.")
    ] = "predicted",
    limit: Limit = None,
    seed: Seed = 0,
    batch_size: Annotated[int, typer.Option(help="Number of texts per batch.")] = 16,
    max_length: MaxLength = None,
    edit: Edits = None,
    device: Device = None,
    dtype: Dtype = None,
    out: FigureOut = None,
    force: Force = False,
    **columns: Any,
) -> None:
    """Show how much each word of a text matters for a model's prediction.

    headscope importances "A tender, funny film." --model tuned --method blank_out -o words.pdf
    """
    _explain({**locals(), **columns})


def _explain(options: dict[str, Any]) -> None:
    """Load, read, explain, print and write."""
    out, force = options["out"] or [], options["force"]
    check_figure_out(out, overwrite=force)
    console = Console(highlight=False)
    with load_library() as hs:
        loaded = hs.load(options["model"], device=options["device"], dtype=options["dtype"])
        examples = _read(options)
    sizes = {name: options[name] for name in ("batch_size", "max_length")}
    aim = {"target": options["target"], "progress": len(examples) > 1}
    with edit_model(loaded, options["edit"]) as changed:
        result = hs.importances(changed, examples, options["method"], **aim, **sizes)
    _print(console, result)
    write_result(result, lambda: hs.draw(_list_texts(result)), out, overwrite=force)


def _read(options: dict[str, Any]) -> "list[hs.Example]":
    """Return the text itself, or a sample of the examples of a file."""
    from headscope.core.example import sample_examples
    from headscope.data.reading.read import read_texts

    named = options["malformed"] != "error" or any(options.get(name) for name in NAMES)
    examples = read_examples(options["data"], options) if named else read_texts(options["data"])
    return sample_examples(examples, options["limit"], options["seed"])


def _list_texts(result: "hs.Importances") -> "list[hs.Importances]":
    return [result.sel(row) for row in range(min(len(result), MAX_SHOWN))]


def _print(console: Console, result: "hs.Importances") -> None:
    """Print each text with shaded words, and the largest scores as numbers, which need no colours."""
    from headscope.display.shaded_words import describe_marks, list_largest, shade_terminal

    console.print(f"{result.method}: {describe_marks(result)}\n", soft_wrap=True)
    for row, example in enumerate(result.examples[:MAX_SHOWN]):
        name = f"{example.id}: " if len(result) > 1 else ""
        console.print(f"{name}{result.answers[row]}, score {result.score[row]:.3g}", markup=False)
        console.print(shade_terminal(result, row))
        console.print(f"largest: {list_largest(result, row)}\n", markup=False)
    if len(result) > MAX_SHOWN:
        console.print(f"The first {MAX_SHOWN} of {len(result)} texts are shown; -o importances.nc saves all.")
