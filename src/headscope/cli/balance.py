"""`headscope balance`: a part of the data in which no cue is shown to tell the label."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.audit.options import BalanceOptions, CueOptions
from headscope.cli.shared.console import print_before_and_after, show_status
from headscope.cli.shared.options import add_options, name_patterns, read_examples, select_options
from headscope.cli.shared.output import print_path
from headscope.data.reading.options import ReadOptions
from headscope.results.options import SaveOptions


@add_options(BalanceOptions, ReadOptions, SaveOptions)
def command(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .parquet), arct:train or glue:rte:dev@DIR.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .jsonl.")],
    **options: Any,
) -> None:
    """Write a part of the examples in which no cue is shown to tell the label.

    headscope balance glue:rte:train@GLUE -o balanced.jsonl
    """
    with show_status("Balancing") as hs:
        from headscope.results.store import refuse_existing

        refuse_existing(out, overwrite=options["force"])
        examples = read_examples(data, options)
        options["patterns"] = name_patterns(options["patterns"])
        balanced = hs.balance(examples, **select_options(options, BalanceOptions))
        hs.save(balanced, out, overwrite=options["force"])
        cues = select_options(options, CueOptions)
        before = hs.cues(examples, **cues)
        if "pairs" not in cues:  # hs.cues has named the absent patterns once already
            cues["patterns"] = {name: text for name, text in cues["patterns"].items() if name in before["cue"].values}
        after = hs.cues(balanced, **cues)
    print_before_and_after(Console(highlight=False), before, after)
    print_path(out)
