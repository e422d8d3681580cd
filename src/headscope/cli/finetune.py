"""`headscope finetune`: a model tuned for a task."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headscope.cli.columns import Choices, Label, Pair, SkipMalformed, Text, read_examples


def verb(
    train: Annotated[str, typer.Argument(help="A file (.jsonl .csv .tsv .txt .parquet) or glue:mrpc:train@DIR")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder that becomes the model.")],
    dev: Annotated[str | None, typer.Option(help="What is scored after each epoch.")] = None,
    model: Annotated[str | None, typer.Option(help="A hub id or a folder; by default a small BERT.")] = None,
    task: Annotated[
        str, typer.Option(help="classification, regression, choice or mlm; auto asks the labels.")
    ] = "auto",
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    choices: Choices = None,
    skip_malformed: SkipMalformed = False,
    epochs: Annotated[int, typer.Option(help="How often every example is seen.")] = 3,
    batch_size: Annotated[int, typer.Option(help="Examples in a step.")] = 8,
    max_length: Annotated[int, typer.Option(help="Cut texts to so many tokens.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="At its highest; it falls in a line to 0.")] = 2e-5,
    warmup: Annotated[float, typer.Option(help="The share of all steps in which it rises to there.")] = 0.0,
    weight_decay: Annotated[float, typer.Option(help="As in AdamW.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the new head, the order, dropout and masks.")] = 0,
    limit: Annotated[int | None, typer.Option(help="So many examples to learn from, chosen at random.")] = None,
    from_scratch: Annotated[bool, typer.Option("--from-scratch", help="Forget the weights, keep the shape.")] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Keep the model of every epoch, as OUT/epoch-1 and so on.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
) -> None:
    """Tune a model for a task.

    headscope finetune glue:mrpc:train@GLUE --dev glue:mrpc:dev@GLUE -o tuned
    """
    _finetune(dict(locals()))


PASSED = (
    "model", "task", "epochs", "batch_size", "max_length", "learning_rate", "warmup", "weight_decay", "seed", "limit",
    "from_scratch", "keep_checkpoints", "device", "resume", "out",
)  # fmt: skip


def _finetune(asked: dict[str, Any]) -> None:
    """Read, tune, and say how dev was scored."""
    console = Console(highlight=False)
    with Console(stderr=True).status("Loading"):
        import headscope as hs

        train = read_examples(asked["train"], asked)
        dev = None if asked["dev"] is None else read_examples(asked["dev"], asked)
    hs.finetune(train=train, dev=dev, **{name: asked[name] for name in PASSED})
    _summary(console, json.loads((asked["out"] / "finetune.json").read_text(encoding="utf-8")))
    console.print(f"Wrote {asked['out']}", soft_wrap=True)


def _summary(console: Console, stamp: dict[str, Any]) -> None:
    """The scores of dev after each epoch."""
    if not stamp["dev"]:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    names = list(stamp["dev"][0])
    for name in names:
        table.add_column(name, justify="right")
    for line in stamp["dev"]:
        table.add_row(str(line["epoch"]), *(f"{line[name]:.4g}" for name in names[1:]))
    console.print(table)
    if stamp["facts"]["majority"] is not None:
        console.print(f"The most common label is {stamp['facts']['majority']:.1%} of train.")
