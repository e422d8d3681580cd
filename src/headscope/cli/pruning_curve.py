"""`headscope pruning-curve`: the score of a model with fewer and fewer heads."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import add_options, read_examples
from headscope.cli.shared.output import write_result
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import load_inputs, scoring_options, scoring_template
from headscope.core.errors import InputError


@add_options(scoring_template)
def verb(
    by: Annotated[list[str] | None, typer.Option(help="importance (default) or random. May be repeated.")] = None,
    steps: Annotated[float, typer.Option(help="Heads per step, in percent of all.")] = 10,
    recompute: Annotated[bool, typer.Option("--recompute", help="Compute importance before each step.")] = False,
    keep: Annotated[int, typer.Option(help="Number of heads that each layer keeps.")] = 0,
    seeds: Annotated[int, typer.Option(help="Number of random orders.")] = 3,
    site: Annotated[str | None, typer.Option(help="encoder, decoder, cross or all.")] = None,
    importance_data: Annotated[str | None, typer.Option(help="Other data for the importance.")] = None,
    **shared: Any,
) -> None:
    """Score a model with fewer and fewer heads, the least important first.

    headscope pruning-curve glue:mrpc:dev@GLUE --model tuned --by importance --by random -o curve.pdf
    """
    orders = list(dict.fromkeys(by or ["importance"]))
    if len(orders) > 1 and any(path.suffix.lower() == ".nc" for path in shared["out"] or []):
        raise InputError("A .nc file holds one curve. Give --by once, or write a figure only.")
    hs, model, examples = load_inputs(shared)
    other = None if importance_data is None else read_examples(importance_data, shared)
    options = {"steps": steps, "keep": keep, "seeds": seeds, "site": site, **scoring_options(shared)}
    ranking = {"recompute": recompute, "importance_data": other}
    curves = {}
    for order in orders:  # several orders share these options, of which a random one takes none
        own = {} if order == "random" and len(orders) > 1 else ranking
        curves[order] = hs.pruning_curve(model, examples, by=order, **options, **own)
    console = Console(highlight=False)
    for order, curve in curves.items():
        console.print(f"By {order}:")
        print_result(console, curve, rows=40)
    write_result(next(iter(curves.values())), lambda: hs.draw(curves), shared["out"], overwrite=shared["force"])
