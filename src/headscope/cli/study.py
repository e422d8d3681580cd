"""`headscope study`: a published experiment, run again."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.cli.columns import Label, Pair, Text
from headscope.core.catalog import studies
from headscope.core.errors import unknown_name
from headscope.core.spec import parse_spec

if TYPE_CHECKING:
    from headscope.core.document import Document


def verb(
    name: Annotated[str, typer.Argument(help="As 'headscope list studies' names it, with any of its parameters.")],
    model: Annotated[str | None, typer.Option(help="A hub id or a folder; by default a small BERT.")] = None,
    data: Annotated[str | None, typer.Option(help="The folder of the study's data, such as GLUE.")] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="A task of --data, such as rte; may be given several times.")
    ] = None,
    dev: Annotated[str | None, typer.Option(help="Data of your own to study, as for 'measure'.")] = None,
    train: Annotated[str | None, typer.Option(help="Data of your own to learn from.")] = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    tuned: Annotated[str | None, typer.Option(help="The folder of a model that is tuned already.")] = None,
    limit: Annotated[int | None, typer.Option(help="So many inputs are studied, chosen at random.")] = None,
    train_limit: Annotated[int | None, typer.Option(help="So many are learned from.")] = None,
    epochs: Annotated[int | None, typer.Option(help="How often each of them is seen.")] = None,
    example: Annotated[
        str | None,
        typer.Option(help="The id of the input whose map is shown; its row number where the data has no ids."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of tuning, and of what is chosen at random.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for all steps and the report.")] = Path("out"),
) -> None:
    """Run a published experiment again, on your model and data, and write a report on what holds.

    headscope study effective-attention --data GLUE --task rte -o out/
    """
    asked: dict[str, Any] = {
        "data": data,
        "tasks": tuple(task) if task else None,
        "dev": dev,
        "train": train,
        "tuned": tuned,
    }
    asked |= {"text": text, "pair": pair, "label": label}
    asked |= {"limit": limit, "train_limit": train_limit, "epochs": epochs, "example": example, "seed": seed}
    _study(name, model, out, device, {key: each for key, each in asked.items() if each is not None})


def _study(name: str, model: str | None, out: Path, device: str | None, options: dict[str, Any]) -> None:
    """Run it, write the report, and say what holds."""
    _check(name, options)
    console = Console(highlight=False)
    with Console(stderr=True).status("Loading"):
        import transformers

        import headscope as hs
        from headscope.reporting.write import check_folder

        transformers.utils.logging.disable_progress_bar()
        check_folder(out / "report")
    found = hs.study(name, model, out=out, device=device, **options)
    page = hs.report(found.document, out / "report")
    _verdicts(console, found.document)
    console.print(f"Wrote {page}", soft_wrap=True)


def _check(name: str, options: dict[str, Any]) -> None:
    """Refuse options that the study has not, by the name they have in the shell."""
    kind = studies.find(parse_spec(name)[0])
    known = [each.name for each in fields(kind)]
    for each in options:
        if each not in known:
            raise unknown_name(f"option of the study '{name}'", each, known)


def _verdicts(console: Console, document: "Document") -> None:
    """The claims and what stands of them, where a study judges some."""
    from headscope.core import document as documents

    for section in document.sections:
        for part in section.parts:
            if isinstance(part, documents.Table) and part.name == "verdicts":
                table = Table(box=None, padding=(0, 2, 0, 0))
                table.add_column("claim", overflow="fold")
                table.add_column("verdict", overflow="fold")
                for claim, line in part.frame.iterrows():
                    table.add_row(escape(str(claim)), escape(str(line["verdict"])))
                console.print(table)
                console.print()
