"""`headscope faithfulness`: what lenses say of a model's attention beside what interventions do."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Model, add_options, read_examples, select_options
from headscope.cli.shared.result_tables import print_result
from headscope.data.reading.options import ReadOptions
from headscope.engine.options import LoadOptions
from headscope.judging.options import FaithfulnessOptions


@add_options(FaithfulnessOptions, LoadOptions, ReadOptions, without=("choices",))
def command(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet) or glue:sst2:dev@DIR.")],
    model: Model = None,
    **options: Any,
) -> None:
    """Compare what lenses say of a model's attention with what interventions do.

    headscope faithfulness reviews.jsonl --model tuned --lens raw --lens effective --target predicted -o judged.nc
    """
    settings = select_options(options, FaithfulnessOptions)
    if len(settings.get("judge", ())) == 1:
        (settings["judge"],) = settings["judge"]
    with load_library() as hs:
        loaded = hs.load(model, **select_options(options, LoadOptions))
        examples = read_examples(data, options)
    result = hs.faithfulness(loaded, examples, **settings)
    console = Console(highlight=False)
    print_result(console, result)
    if options["out"] is not None:
        console.print(f"Wrote {options['out']}", soft_wrap=True)
