"""`headscope pruning-curve`: the score of a model with fewer and fewer heads."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.ablation.options import PruningCurveOptions
from headscope.cli.shared.options import add_options, read_examples, select_options
from headscope.cli.shared.output import FigureOut, check_figure_out, write_result
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import ScoredData, TunedModel, load_inputs
from headscope.core.errors import InputError
from headscope.data.reading.options import ReadOptions, SampleOptions
from headscope.engine.options import LoadOptions
from headscope.results.options import SaveOptions

RANKING = ("recompute", "importance_data")
"""Options of which a random order takes none."""


@add_options(PruningCurveOptions, SampleOptions, LoadOptions, ReadOptions, SaveOptions)
def command(
    data: ScoredData,
    model: TunedModel,
    by: Annotated[list[str] | None, typer.Option(help="importance (default) or random. May be repeated.")] = None,
    out: FigureOut = None,
    **options: Any,
) -> None:
    """Score a model with fewer and fewer heads, the least important first.

    headscope pruning-curve glue:mrpc:dev@GLUE --model tuned --by importance --by random -o curve.pdf
    """
    orders = list(dict.fromkeys(by or ["importance"]))
    if len(orders) > 1 and any(path.suffix.lower() == ".nc" for path in out or []):
        raise InputError("A .nc file holds one curve. Give --by once, or write a figure only.")
    check_figure_out(out, overwrite=options["force"])
    hs, loaded, examples = load_inputs(data, model, options)
    if options["importance_data"] is not None:
        options["importance_data"] = read_examples(options["importance_data"], options)
    chosen = select_options(options, PruningCurveOptions)
    common = {name: value for name, value in chosen.items() if name not in RANKING}
    curves = {
        order: hs.pruning_curve(
            loaded, examples, **(common if order == "random" and len(orders) > 1 else chosen) | {"by": order}
        )
        for order in orders
    }
    console = Console(highlight=False)
    for order, curve in curves.items():
        console.print(f"By {order}:")
        print_result(console, curve, rows=40)
    write_result(next(iter(curves.values())), lambda: hs.draw(curves), out, overwrite=options["force"])
