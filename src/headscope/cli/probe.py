"""`headscope probe`: what attention knows of syntax and coreference."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Model, add_options, read_examples, select_options
from headscope.cli.shared.output import FigureOut, check_figure_out, write_result
from headscope.cli.shared.result_tables import print_result
from headscope.data.reading.options import ReadOptions
from headscope.engine.options import LoadOptions
from headscope.measuring.options import ProbeOptions
from headscope.results.options import SaveOptions


@add_options(ProbeOptions, LoadOptions, ReadOptions, SaveOptions, also=("probe",))
def command(
    data: Annotated[str, typer.Argument(help="A treebank (.conllu) or another file with what the probe needs.")],
    model: Model = None,
    out: FigureOut = None,
    **options: Any,
) -> None:
    """Fit a probe to the attention between words, on half of the documents, and report on the others.

    headscope probe trees.conllu --probe dependency -o relations.nc -o relations.pdf
    """
    check_figure_out(out, overwrite=options["force"])
    with load_library() as hs:
        examples = read_examples(data, options)
        if options["train"] is not None:
            options["train"] = read_examples(options["train"], options)
        loaded = hs.load(model, **select_options(options, LoadOptions))
    result = hs.probe(loaded, examples, options["probe"], **select_options(options, ProbeOptions))
    print_result(Console(highlight=False), result, rows=40, sections=None)
    write_result(result, lambda: hs.draw(result), out, overwrite=options["force"])
