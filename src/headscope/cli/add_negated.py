"""`headscope add-negated`: adversarial copies of a multiple choice."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headscope.cli.shared.console import print_before_and_after, show_status
from headscope.cli.shared.options import Choices, Encoding, Id, Label, Labels, Malformed, Text, read_examples
from headscope.cli.shared.output import Force


def verb(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .parquet) with two choices, or arct:train.")
    ],
    negations: Annotated[str, typer.Argument(help="A table (.csv .tsv .jsonl) with the columns original and negated.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .jsonl.")],
    column: Annotated[str, typer.Option(help="Column with the claim, which is part of the text.")] = "claim",
    text: Text = None,
    label: Label = None,
    id: Id = None,  # noqa: A002  (the column's name everywhere)
    choices: Choices = None,
    labels: Labels = None,
    encoding: Encoding = None,
    malformed: Malformed = "error",
    force: Force = False,
) -> None:
    """Write the examples, each with a copy that has the negated claim and the other label.

    headscope add-negated arct:dev claim_map.csv -o adversarial.jsonl
    """
    columns = dict(locals())
    with show_status("Negating") as hs:
        from headscope.results.store import refuse_existing

        refuse_existing(out, overwrite=force)
        examples = read_examples(data, columns)
        both = hs.add_negated(examples, negations, column=column)
        hs.save(both, out, overwrite=force)
        results = [hs.cues(part) for part in (examples, both)]
    console = Console(highlight=False)
    print_before_and_after(console, *results)
    console.print(f"Wrote {out}", soft_wrap=True)
