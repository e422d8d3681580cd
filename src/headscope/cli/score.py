"""`headscope score`: score a tuned model."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.options import add_options, select_options
from headscope.cli.shared.output import print_path
from headscope.cli.shared.result_tables import print_result
from headscope.cli.shared.scored_model import ScoredData, TunedModel, load_inputs
from headscope.data.reading.options import ReadOptions
from headscope.engine.options import LoadOptions
from headscope.results.options import SaveOptions
from headscope.training.options import ScoreOptions


@add_options(ScoreOptions, LoadOptions, ReadOptions, SaveOptions)
def command(
    data: ScoredData,
    model: TunedModel,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file: .nc or .zarr.")] = None,
    **options: Any,
) -> None:
    """Score a tuned model, with confidence intervals.

    headscope score glue:mrpc:dev@GLUE --model tuned -o score.nc
    """
    from headscope.results.store import refuse_existing

    refuse_existing(out, overwrite=options["force"])
    hs, loaded, examples = load_inputs(data, model, options)
    result = hs.score(loaded, examples, **select_options(options, ScoreOptions))
    print_result(Console(highlight=False), result)
    if out is not None:
        hs.save(result, out, overwrite=options["force"])
        print_path(out)
