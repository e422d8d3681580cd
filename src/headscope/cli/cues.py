"""`headscope cues`: words that tell the label."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headscope.audit.options import CuesOptions
from headscope.cli.shared.console import show_status
from headscope.cli.shared.options import add_options, name_patterns, read_examples, select_options
from headscope.cli.shared.output import FigureOut, check_figure_out, write_result
from headscope.cli.shared.result_tables import print_table
from headscope.data.reading.options import ReadOptions, SampleOptions
from headscope.results.options import SaveOptions

if TYPE_CHECKING:
    import xarray as xr


@add_options(CuesOptions, SampleOptions, ReadOptions, SaveOptions)
def command(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .parquet), arct:train or glue:rte:dev@DIR.")
    ],
    top: Annotated[int, typer.Option(help="Number of cues to print, besides patterns.")] = 15,
    out: FigureOut = None,
    **options: Any,
) -> None:
    """Count how well every word, n-gram and pattern alone tells the label.

    headscope cues arct:train -o cues.pdf -o cues.nc
    """
    check_figure_out(out, overwrite=options["force"])
    with show_status("Counting") as hs:
        from headscope.core.example import sample_examples

        examples = sample_examples(read_examples(data, options), options["limit"], options["seed"])
        options["patterns"] = name_patterns(options["patterns"])
        result = hs.cues(examples, **select_options(options, CuesOptions))
    console = Console(highlight=False)
    _print_cues(console, result, top, list(options["patterns"]))
    write_result(result, lambda: hs.draw(result), out, overwrite=options["force"])


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
