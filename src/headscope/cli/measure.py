"""`headscope measure`: statistics of every head over a dataset."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headscope.cli.columns import Label, Pair, SkipMalformed, Text, read
from headscope.engine.progress import format_duration

if TYPE_CHECKING:
    import xarray as xr


def verb(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet .conllu) or glue:rte:dev@DIR")],
    stat: Annotated[list[str], typer.Option(help="As 'headscope list statistics' names it, any number.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to: .nc .zarr .csv .parquet, or .state to merge.")],
    model: Annotated[str | None, typer.Option(help="A hub id or a folder; by default a small BERT.")] = None,
    lens: Annotated[list[str] | None, typer.Option(help="As 'headscope list lenses' names it, any number.")] = None,
    against: Annotated[str | None, typer.Option(help="A second model, for statistics that compare two.")] = None,
    edit: Annotated[list[str] | None, typer.Option(help="As 'headscope list edits' names it.")] = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    skip_malformed: SkipMalformed = False,
    limit: Annotated[int | None, typer.Option(help="So many examples, chosen at random.")] = None,
    seed: Annotated[int, typer.Option(help="For --limit.")] = 0,
    shard: Annotated[str | None, typer.Option(help="A part of the whole, such as 3/16.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Keep the value of every example.")] = False,
    units: Annotated[str, typer.Option(help="tokens, words or words_first.")] = "tokens",
    site: Annotated[str | None, typer.Option(help="encoder, decoder or cross, where there are several.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Cut texts to so many tokens.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="The most examples at a time.")] = None,
    tagger: Annotated[str, typer.Option(help="auto, english, gold or spacy:MODEL.")] = "auto",
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    workers: Annotated[int | None, typer.Option(help="Processes, for --engine ray.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16 or float64.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and stop.")] = False,
) -> None:
    """Measure statistics of every head over a dataset.

    headscope measure reviews.jsonl --lens effective --stat entropy -o heads.nc
    """
    _measure(dict(locals()))


LOADING = ("device", "dtype")
PASSED = ("limit", "seed", "shard", "rows", "units", "site", "max_length", "batch_size", "tagger")


def _measure(asked: dict[str, Any]) -> None:
    """Load, read, and measure or say what it would take."""
    console = Console(highlight=False)
    with Console(stderr=True).status("Loading"):
        import transformers

        import headscope as hs

        transformers.utils.logging.disable_progress_bar()
        loading = {name: asked[name] for name in LOADING}
        model = hs.load(asked["model"], **loading)
        against = None if asked["against"] is None else hs.load(asked["against"], **loading)
        examples = read(asked["data"], asked)
    what = {"lens": asked["lens"] or ["raw"], "statistics": asked["stat"], "against": against, "edit": asked["edit"]}
    options = {name: asked[name] for name in PASSED}
    if asked["dry_run"]:
        _say_estimate(console, model, examples, {**what, **options})
        return
    running = {name: asked[name] for name in ("engine", "workers", "out", "resume")}
    found = hs.measure(model, examples, **what, **running, **options)
    _summary(console, found)
    console.print(f"Wrote {asked['out']}", soft_wrap=True)


def _say_estimate(console: Console, model: Any, examples: Any, asked: dict[str, Any]) -> None:
    from headscope.measuring.estimate import estimate
    from headscope.measuring.prepare import prepare_job

    with Console(stderr=True).status("Trying two batches"):
        found = estimate(prepare_job(model, examples, **asked))
    console.print(f"{found.examples:,} examples in {found.batches:,} batches: about {format_duration(found.seconds)}")
    console.print(f"memory: about {_bytes(found.memory)} ({_bytes(found.free_memory)} are free now)")
    console.print(f"disk: about {_bytes(found.disk)} for the result and what is saved on the way")


def _summary(console: Console, data: "xr.Dataset") -> None:
    """One line for each statistic and lens: the mean over heads, and the heads with the least and the most."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("statistic", "lens"):
        table.add_column(name)
    for name in ("mean", "least", "most", "n"):
        table.add_column(name, justify="right")
    plain = [str(name) for name in data.data_vars if set(data[name].dims) == {"lens", "site", "layer", "head"}]
    for name in plain:
        if f"{name}_n" in data:
            for lens in data["lens"].values:
                table.add_row(*_line(data, name, str(lens)))
    if table.rows:
        console.print(table)
    others = [str(name) for name in data.data_vars if f"{name}_n" in data and str(name) not in plain]
    if others:
        console.print(f"With further axes, in the file: {', '.join(others)}")


def _line(data: "xr.Dataset", name: str, lens: str) -> list[str]:
    one = data.sel(lens=lens).isel(site=0)
    cells, n = one[name], one[f"{name}_n"]
    if not int(n.max()):
        return [name, lens, "–", "–", "–", "0"]
    ends = [cells.where(n > 0).stack(at=("layer", "head")) for _ in range(2)]
    least, most = ends[0].idxmin().item(), ends[1].idxmax().item()
    named = [f"{float(cells.sel(layer=a, head=b)):.3g} (L{a}H{b})" for a, b in (least, most)]
    return [name, lens, f"{float(cells.mean()):.3g}", *named, f"{int(n.max()):,}"]


def _bytes(many: int) -> str:
    """A number of bytes as a person says it."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    place = min(len(units) - 1, (len(str(max(many, 1))) - 1) // 3)
    return f"{many / 1000**place:.3g} {units[place]}"
