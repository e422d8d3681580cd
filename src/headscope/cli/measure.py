"""`headscope measure`: statistics of every head over a dataset."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import (
    Device,
    Dtype,
    Edits,
    Heads,
    Layers,
    Limit,
    MaxLength,
    Model,
    PadTo,
    Seed,
    Site,
    Target,
    add_options,
    column_options,
    complete_from,
    read_examples,
)
from headscope.cli.shared.output import Force
from headscope.cli.shared.result_tables import print_result
from headscope.core.lens import DEFAULT_LENSES
from headscope.core.prose import count_noun, format_bytes, join_words
from headscope.engine.progress import format_duration

Statistics = Annotated[
    list[str],
    typer.Option(
        "--statistics",
        "--stat",
        help="A statistic, see 'headscope list statistics'. May be repeated.",
        autocompletion=complete_from("statistics"),
    ),
]
Lenses = Annotated[
    list[str] | None,
    typer.Option(
        "--lens",
        help=f"A lens, see 'headscope list lenses'. May be repeated. Default: {join_words(DEFAULT_LENSES)}.",
        autocompletion=complete_from("lenses"),
    ),
]


@add_options(column_options, without=("choices",))
def verb(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet .conllu) or glue:rte:dev@DIR.")
    ],
    statistics: Statistics,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Output file: .nc .zarr .csv .parquet, or .state for a shard to merge.")
    ],
    model: Model = None,
    lens: Lenses = None,
    against: Annotated[str | None, typer.Option(help="A second model, for statistics that compare two.")] = None,
    edit: Edits = None,
    limit: Limit = None,
    seed: Seed = 0,
    shard: Annotated[str | None, typer.Option(help="Measure one part of the examples, such as 3/16.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Keep the value of every example.")] = False,
    units: Annotated[str, typer.Option(help="tokens, words or words_first.")] = "tokens",
    target: Target = None,
    site: Site = None,
    layers: Layers = None,
    heads: Heads = None,
    max_length: MaxLength = None,
    pad_to: PadTo = None,
    batch_size: Annotated[int | None, typer.Option(help="Maximum number of examples per batch.")] = None,
    tagger: Annotated[str, typer.Option(help="auto, english, gold or spacy:MODEL.")] = "auto",
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    workers: Annotated[int | None, typer.Option(help="Number of processes, for --engine ray.")] = None,
    device: Device = None,
    dtype: Dtype = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    force: Force = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate time, memory and disk, and exit.")] = False,
    **columns: Any,
) -> None:
    """Measure statistics of every head over a dataset.

    headscope measure reviews.jsonl --statistics entropy -o heads.nc
    """
    _measure({**locals(), **columns})


LOAD_OPTIONS = ("device", "dtype")
MEASURE_OPTIONS = (
    "lens", "statistics", "limit", "seed", "shard", "rows", "units", "site", "layers", "heads", "max_length", "pad_to",
    "batch_size", "tagger", "target",
)  # fmt: skip
RUN_OPTIONS = ("engine", "workers", "out", "resume", "overwrite")


def _measure(options: dict[str, Any]) -> None:
    """Load, read, and measure or estimate."""
    console = Console(highlight=False)
    options["overwrite"] = options.pop("force")
    with load_library() as hs:
        if not options["dry_run"]:
            _check_out(options)
        loading = {name: options[name] for name in LOAD_OPTIONS}
        model = hs.load(options["model"], **loading)
        against = None if options["against"] is None else hs.load(options["against"], **loading)
        examples = _read(model, options)
    models = {"against": against, "edit": options["edit"]}
    settings = {name: options[name] for name in MEASURE_OPTIONS if options[name] not in (None, [])}
    if options["dry_run"]:
        _print_estimate(console, model, examples, models, settings)
        return
    result = hs.measure(model, examples, **models, **settings, **{name: options[name] for name in RUN_OPTIONS})
    print_result(console, result, rows=40)
    console.print(f"Wrote {options['out']}", soft_wrap=True)


def _read(model: Any, options: dict[str, Any]) -> Any:
    """Read the examples, or for a model of images an image or a folder of them."""
    from headscope.engine.images import read_images, reads_images

    return read_images(options["data"]) if reads_images(model) else read_examples(options["data"], options)


def _check_out(options: dict[str, Any]) -> None:
    """Refuse a result that exists before the model is loaded."""
    from headscope.measuring.measure import check_out

    check_out(options["out"], resume=options["resume"], overwrite=options["overwrite"])


def _print_estimate(
    console: Console, model: Any, examples: Any, models: dict[str, Any], settings: dict[str, Any]
) -> None:
    from headscope.measuring.estimate import estimate
    from headscope.measuring.job import prepare_job
    from headscope.measuring.settings import make_measure_settings

    with Console(stderr=True).status("Measuring two batches"):
        cost = estimate(
            prepare_job(model, examples, make_measure_settings(**{"lens": DEFAULT_LENSES, **settings}), **models)
        )
    size = f"{count_noun(cost.examples, 'example')} in {count_noun(cost.batches, 'batch', 'batches')}"
    console.print(f"{size}: about {format_duration(cost.seconds)}")
    console.print(f"memory: about {format_bytes(cost.memory)} ({format_bytes(cost.free_memory)} free now)")
    console.print(f"disk: about {format_bytes(cost.disk)} for the result and checkpoints")
