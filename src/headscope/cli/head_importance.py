"""`headscope head-importance`: how much each head matters for a task."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import Edits, Site, add_options
from headscope.cli.shared.output import write_result
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import load_inputs, scoring_options, scoring_template


@add_options(scoring_template)
def verb(
    reduction: Annotated[
        str, typer.Option(help="Where absolute values are taken: example, token or batch.")
    ] = "example",
    normalize: Annotated[
        str | None, typer.Option(help="layer: divide the values of each layer by their L2 norm.")
    ] = None,
    site: Site = None,
    edit: Edits = None,
    **shared: Any,
) -> None:
    """Estimate how much each head matters for a task, from gradients.

    headscope head-importance glue:mrpc:dev@GLUE --model tuned -o heads.nc -o heads.pdf
    """
    hs, model, examples = load_inputs(shared)
    options = {"reduction": reduction, "normalize": normalize, "site": site, "edit": edit}
    result = hs.head_importance(model, examples, **options, **scoring_options(shared))
    print_result(Console(highlight=False), result)
    write_result(result, lambda: hs.draw(result), shared["out"], overwrite=shared["force"])
