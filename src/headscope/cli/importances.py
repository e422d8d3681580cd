"""`headscope importances`: how much each word of a text matters for a prediction."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Model, add_options, edit_model, read_examples, select_options
from headscope.cli.shared.output import FigureOut, check_figure_out, write_result
from headscope.data.reading.options import ReadOptions, SampleOptions
from headscope.engine.options import EditOptions, ImportancesOptions, LoadOptions
from headscope.results.options import SaveOptions

if TYPE_CHECKING:
    import headscope as hs

MAX_SHOWN = 10
"""Texts that are printed."""


@add_options(
    ImportancesOptions,
    SampleOptions,
    EditOptions,
    LoadOptions,
    ReadOptions,
    SaveOptions,
    also=("method",),
    without=("choices",),
)
def command(
    data: Annotated[str, typer.Argument(help="A text, a file (.jsonl .json .csv .tsv .txt) or glue:sst2:dev@DIR.")],
    model: Model = None,
    out: FigureOut = None,
    **options: Any,
) -> None:
    """Show how much each word of a text matters for a model's prediction.

    headscope importances "A tender, funny film." --model tuned --method blank_out -o words.pdf
    """
    check_figure_out(out, overwrite=options["force"])
    with load_library() as hs:
        loaded = hs.load(model, **select_options(options, LoadOptions))
        examples = _read(data, options)
    chosen = {**select_options(options, ImportancesOptions), "progress": len(examples) > 1}
    with edit_model(loaded, options["edit"]) as changed:
        result = hs.importances(changed, examples, options["method"], **chosen)
    _print(Console(highlight=False), result)
    write_result(result, lambda: hs.draw(_list_texts(result)), out, overwrite=options["force"])


def _read(data: str, options: dict[str, Any]) -> "list[hs.Example]":
    """Return the text itself, or a sample of the examples of a file."""
    from headscope.core.example import sample_examples
    from headscope.data.reading.read import read_texts

    columns = {**select_options(options, ReadOptions), "malformed": options["malformed"]}
    examples = read_texts(data) if columns == {"malformed": "error"} else read_examples(data, options)
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
