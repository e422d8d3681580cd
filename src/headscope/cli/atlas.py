"""`headscope atlas`: every head of a model over a corpus, as a folder to look at."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library
from headscope.cli.shared.options import Model, add_options, scan_inputs, select_options
from headscope.data.reading.options import ReadOptions
from headscope.engine.options import LoadOptions
from headscope.head_atlas.options import AtlasOptions


@add_options(AtlasOptions, LoadOptions, ReadOptions, without=("choices",))
def command(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet .conllu), sample, or glue:rte:dev@DIR.")
    ],
    model: Model = None,
    **options: Any,
) -> None:
    """Measure every head over a corpus, and write a folder in which heads and their examples can be looked at.

    headscope atlas reviews.jsonl -o atlas
    """
    console = Console(highlight=False)
    with load_library() as hs:
        loaded = hs.load(model, **select_options(options, LoadOptions))
        examples = scan_inputs(loaded, data, options)
    result = hs.atlas(loaded, examples, **select_options(options, AtlasOptions))
    heads = result.sizes["layer"] * result.sizes["head"]
    console.print(f"{heads:,} heads. Open {Path(options['out']) / 'index.html'} in a browser.", soft_wrap=True)
    if options["headvis"]:
        console.print(f"Wrote {options['headvis']} in the layout of HeadVis", soft_wrap=True)
