"""`headscope balance`: a part of the data in which no cue tells the label."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headscope.cli.audit_summary import print_before_and_after
from headscope.cli.console import show_status
from headscope.cli.options import (
    Choices,
    Force,
    Id,
    Label,
    Malformed,
    Ngrams,
    Pair,
    Parts,
    Patterns,
    Text,
    Words,
    name_patterns,
    read_examples,
)


def verb(
    data: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .parquet), arct:train or glue:rte:dev@DIR.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .jsonl.")],
    ngrams: Ngrams = None,
    patterns: Patterns = None,
    parts: Parts = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed that decides between equals.")] = 0,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    words: Words = None,
    id: Id = None,  # noqa: A002  (the column's name everywhere)
    choices: Choices = None,
    malformed: Malformed = "error",
    force: Force = False,
) -> None:
    """Write a part of the examples in which no cue tells the label.

    headscope balance glue:rte:train@GLUE -o balanced.jsonl
    """
    columns = dict(locals())
    with show_status("Balancing") as hs:
        from headscope.results.store import refuse_existing

        refuse_existing(out, overwrite=force)
        examples = read_examples(data, columns)
        looked_for = {"ngrams": ngrams or (1, 2), "patterns": name_patterns(patterns), "parts": parts}
        balanced = hs.balance(examples, **looked_for, seed=seed)
        hs.save(balanced, out, overwrite=force)
        results = [hs.cues(part, **looked_for) for part in (examples, balanced)]
    console = Console(highlight=False)
    print_before_and_after(console, *results)
    console.print(f"Wrote {out}", soft_wrap=True)
