"""`headscope score`: score a tuned model."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import Edits, PadTo, add_options
from headscope.cli.shared.output import print_path
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import load_inputs, scoring_options, scoring_template


@add_options(scoring_template, without=("limit", "seed", "out"))
def verb(
    edit: Edits = None,
    pad_to: PadTo = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc or .zarr.")] = None,
    **shared: Any,
) -> None:
    """Score a tuned model, with confidence intervals.

    headscope score glue:mrpc:dev@GLUE --model tuned -o score.nc
    """
    from headscope.results.store import refuse_existing

    refuse_existing(out, overwrite=shared["force"])
    hs, model, examples = load_inputs(shared)
    result = hs.score(model, examples, edit=edit, pad_to=pad_to, **scoring_options(shared))
    print_result(Console(highlight=False), result)
    if out is not None:
        hs.save(result, out, overwrite=shared["force"])
        print_path(out)
