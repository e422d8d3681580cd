"""`headscope measure`: statistics of every head over a dataset."""

from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Model, add_options, scan_inputs, select_options
from headscope.cli.shared.result_tables import print_result
from headscope.core.progress import format_duration
from headscope.core.prose import count_noun, format_bytes
from headscope.data.reading.options import ReadOptions
from headscope.engine.options import LoadOptions
from headscope.measuring.options import MeasureOptions


@add_options(MeasureOptions, LoadOptions, ReadOptions, without=("choices",), required=("out",))
def command(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet .conllu) or glue:rte:dev@DIR.")
    ],
    model: Model = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate time, memory and disk, and exit.")] = False,
    **options: Any,
) -> None:
    """Measure statistics of every head over a dataset.

    headscope measure reviews.jsonl --statistics entropy -o heads.nc
    """
    console = Console(highlight=False)
    settings = select_options(options, MeasureOptions)
    with load_library() as hs:
        from headscope.measuring.measure import check_out

        if not dry_run:
            check_out(options["out"], resume=options["resume"], overwrite=options["force"])
        loading = select_options(options, LoadOptions)
        loaded = hs.load(model, **loading)
        if options["against"] is not None:
            settings["against"] = hs.load(options["against"], **loading)
        examples = scan_inputs(loaded, data, options)
    if dry_run:
        _print_estimate(console, MeasureOptions(loaded, examples, **settings))
        return
    result = hs.measure(loaded, examples, **settings)
    print_result(console, result, rows=40)
    console.print(f"Wrote {options['out']}", soft_wrap=True)


def _print_estimate(console: Console, options: MeasureOptions) -> None:
    from headscope.measuring.estimate import estimate
    from headscope.measuring.measure import prepare_measurement

    with Console(stderr=True).status("Measuring two batches"):
        cost = estimate(prepare_measurement(options))
    size = f"{count_noun(cost.examples, 'example')} in {count_noun(cost.batches, 'batch', 'batches')}"
    console.print(f"{size}: about {format_duration(cost.seconds)}")
    console.print(f"memory: about {format_bytes(cost.memory)} ({format_bytes(cost.free_memory)} free now)")
    console.print(f"disk: about {format_bytes(cost.disk)} for the result and checkpoints")
