"""`headscope cues`: words that tell the label."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import show_status
from headscope.cli.shared.options import (
    Limit,
    Ngrams,
    Parts,
    Patterns,
    Seed,
    add_options,
    column_options,
    name_patterns,
    read_examples,
)
from headscope.cli.shared.output import FigureOut, Force, check_figure_out, write_result
from headscope.cli.shared.result_tables import print_table

if TYPE_CHECKING:
    import xarray as xr


@add_options(column_options)
def verb(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .parquet), arct:train or glue:rte:dev@DIR.")
    ],
    ngrams: Ngrams = None,
    patterns: Patterns = None,
    variant: Annotated[
        str, typer.Option(help="When a cue applies to choices: exclusive (in one of them) or either (in at least one).")
    ] = "exclusive",
    parts: Parts = None,
    min_count: Annotated[int, typer.Option(help="Leave out cues that apply to fewer examples.")] = 1,
    smoothing: Annotated[float, typer.Option(help="Added to the counts of PMI.")] = 100.0,
    top: Annotated[int, typer.Option(help="Number of cues to print, besides patterns.")] = 15,
    limit: Limit = None,
    seed: Seed = 0,
    out: FigureOut = None,
    force: Force = False,
    **columns: Any,
) -> None:
    """Count how well every word, n-gram and pattern alone tells the label.

    headscope cues arct:train -o cues.pdf -o cues.nc
    """
    check_figure_out(out, overwrite=force)
    with show_status("Counting") as hs:
        from headscope.core.example import sample_examples

        examples = sample_examples(read_examples(data, columns), limit, seed)
        options = {"ngrams": ngrams or (1, 2), "patterns": name_patterns(patterns), "parts": parts}
        result = hs.cues(examples, **options, variant=variant, min_count=min_count, smoothing=smoothing)
    console = Console(highlight=False)
    _print_cues(console, result, top, list(name_patterns(patterns)))
    write_result(result, lambda: hs.draw(result), out, overwrite=force)


def _print_cues(console: Console, data: "xr.Dataset", top: int, patterns: Sequence[str]) -> None:
    """Print the cues with the largest gain, one a line, and the patterns that were asked for."""
    from headscope.core.document import Table
    from headscope.kinds.cues import describe_harmful, tabulate_cues

    asked = [index for index, name in enumerate(data["cue"].values) if index < top or name in patterns]
    sure, n = int(data["productivity_significant"].sum()), int(data["n"])
    caption = (
        f"{data.sizes['cue']:,} cues in {n:,} examples, sorted by coverage · (productivity − chance); {sure:,} are "
        f"significant.{describe_harmful(data)} p is corrected for all cues (Holm)."
    )
    print_table(console, Table("cues", caption, tabulate_cues(data.isel(cue=asked)), n), len(asked))
