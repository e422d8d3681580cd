"""`headscope balance`: a part of the data in which no cue is shown to tell the label."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import print_before_and_after, show_status
from headscope.cli.shared.options import (
    Ngrams,
    Parts,
    Patterns,
    add_options,
    column_options,
    name_patterns,
    read_examples,
)
from headscope.cli.shared.output import Force, print_path


@add_options(column_options)
def verb(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .parquet), arct:train or glue:rte:dev@DIR.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .jsonl.")],
    ngrams: Ngrams = None,
    patterns: Patterns = None,
    parts: Parts = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed that decides between equals.")] = 0,
    force: Force = False,
    **columns: Any,
) -> None:
    """Write a part of the examples in which no cue is shown to tell the label.

    headscope balance glue:rte:train@GLUE -o balanced.jsonl
    """
    with show_status("Balancing") as hs:
        from headscope.results.store import refuse_existing

        refuse_existing(out, overwrite=force)
        examples = read_examples(data, columns)
        looked_for = {"ngrams": ngrams or (1, 2), "patterns": name_patterns(patterns), "parts": parts}
        balanced = hs.balance(examples, **looked_for, seed=seed)
        hs.save(balanced, out, overwrite=force)
        results = [hs.cues(part, **looked_for) for part in (examples, balanced)]
    print_before_and_after(Console(highlight=False), *results)
    print_path(out)
