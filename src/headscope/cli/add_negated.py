"""`headscope add-negated`: adversarial copies of a multiple choice."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.audit.options import AddNegatedOptions
from headscope.cli.shared.console import print_before_and_after, show_status
from headscope.cli.shared.options import add_options, read_examples, select_options
from headscope.data.reading.options import ReadOptions
from headscope.results.options import SaveOptions


@add_options(AddNegatedOptions, ReadOptions, SaveOptions, without=("pair", "words"))
def command(
    data: Annotated[
        str, typer.Argument(help="A file (.jsonl .json .csv .tsv .parquet) with two choices, or arct:train.")
    ],
    negations: Annotated[str, typer.Argument(help="A table (.csv .tsv .jsonl) with the columns original and negated.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .jsonl.")],
    **options: Any,
) -> None:
    """Write the examples, each with a copy that has the negated claim and the other label.

    headscope add-negated arct:dev claim_map.csv -o adversarial.jsonl
    """
    with show_status("Negating") as hs:
        from headscope.results.store import refuse_existing

        refuse_existing(out, overwrite=options["force"])
        examples = read_examples(data, options)
        both = hs.add_negated(examples, negations, **select_options(options, AddNegatedOptions))
        hs.save(both, out, overwrite=options["force"])
        results = [hs.cues(rows) for rows in (examples, both)]
    console = Console(highlight=False)
    print_before_and_after(console, *results)
    console.print(f"Wrote {out}", soft_wrap=True)
