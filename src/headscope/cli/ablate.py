"""`headscope ablate`: score a model without each of its heads."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import Site, add_options, complete_from
from headscope.cli.shared.output import write_result
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import load_inputs, scoring_options, scoring_template

HeadEdit = Annotated[
    str,
    typer.Option(
        "--edit",
        help="An edit of heads without its heads: zero_heads, uniform_heads, mean_heads:means=FILE.",
        autocompletion=complete_from("edits"),
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--sets", help="heads, layers or all_but_one; or heads such as L3H7+L0H1, repeated for each set."),
]


@add_options(scoring_template)
def verb(edit: HeadEdit = "zero_heads", sets: Sets = None, site: Site = None, **shared: Any) -> None:
    """Score a model without each of its heads, with paired tests.

    headscope ablate glue:sst2:dev@GLUE --model tuned -o ablation.nc -o ablation.pdf
    """
    hs, model, examples = load_inputs(shared)
    result = hs.ablate(model, examples, edit=edit, sets=_read_sets(sets), site=site, **scoring_options(shared))
    print_result(Console(highlight=False), result)
    write_result(result, lambda: hs.draw(result), shared["out"], overwrite=shared["force"])


def _read_sets(sets: list[str] | None) -> Any:
    """Return the kind of sets that is named, every head by default, or else a list of selections."""
    from headscope.ablation.head_sets import KINDS

    named = [name.replace("-", "_") for name in sets or ["heads"]]
    return named[0] if len(named) == 1 and named[0] in KINDS else sets
