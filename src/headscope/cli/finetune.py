"""`headscope finetune`: fine-tune a model for a task."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library, make_table
from headscope.cli.shared.options import Device, Model, add_options, column_options, read_examples
from headscope.cli.shared.output import Force
from headscope.core.errors import InputError

OPTIONS = (
    "model", "tokenizer", "task", "epochs", "batch_size", "max_length", "learning_rate", "warmup", "weight_decay",
    "seed", "limit", "from_scratch", "keep_checkpoints", "checkpoints", "device", "resume", "out",
)  # fmt: skip

Checkpoints = Annotated[int, typer.Option(help="Number of models to keep at equal distances, as OUT/step-24, …")]
Config = Annotated[
    Path | None,
    typer.Option(help="Train a new model with this config (JSON, as transformers' config.json)."),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(help="Of a new model: words or subwords. Default: subwords for encoder-decoders, else words."),
]


@add_options(column_options)
def verb(
    train: Annotated[str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet) or glue:mrpc:train@DIR.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder of the model.")],
    dev: Annotated[str | None, typer.Option(help="Data to score after each epoch.")] = None,
    model: Model = None,
    task: Annotated[
        str, typer.Option(help="classification, regression, choice, translation, mlm or causal. auto: from the labels.")
    ] = "auto",
    epochs: Annotated[int, typer.Option(help="Number of training epochs.")] = 3,
    batch_size: Annotated[int, typer.Option(help="Number of examples per step.")] = 8,
    max_length: Annotated[int, typer.Option(help="Truncate texts to this number of tokens.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="Maximum learning rate; it decays linearly to 0.")] = 2e-5,
    warmup: Annotated[float, typer.Option(help="Share of all steps with a rising learning rate.")] = 0.0,
    weight_decay: Annotated[float, typer.Option(help="Weight decay of AdamW.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Random seed of the new head, the order, dropout and masks.")] = 0,
    limit: Annotated[
        int | None, typer.Option(help="Number of training examples, sampled at random. Default: all.")
    ] = None,
    config: Config = None,
    tokenizer: Tokenizer = None,
    from_scratch: Annotated[bool, typer.Option("--from-scratch", help="Start from random weights.")] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Keep the model of every epoch as OUT/epoch-1, …")
    ] = False,
    checkpoints: Checkpoints = 0,
    device: Device = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    force: Force = False,
    **columns: Any,
) -> None:
    """Fine-tune a model for a task.

    headscope finetune glue:mrpc:train@GLUE --dev glue:mrpc:dev@GLUE -o tuned
    """
    options = {**locals(), **columns}
    with load_library() as hs:
        examples = {
            name: read_examples(options[name], options) for name in ("train", "dev") if options[name] is not None
        }
        options |= _read_new_model(config, model, tokenizer)
    hs.finetune(**examples, **{name: options[name] for name in OPTIONS}, overwrite=force)
    console = Console(highlight=False)
    _print_summary(console, json.loads((out / "finetune.json").read_text(encoding="utf-8")))
    console.print(f"Wrote {out}", soft_wrap=True)


def _read_new_model(config: Path | None, model: str | None, tokenizer: str | None) -> dict[str, Any]:
    """Return the options of hs.finetune for a new model; without a config, those for the given one."""
    if config is None:
        return {}
    if model is not None:
        raise InputError(
            f"Both --config {config} and --model {model} are given, but one model is trained. Leave one out."
        )
    from headscope.training.finetuning.new_model import SUBWORDS, WORDS, read_config

    new = read_config(config)
    return {"model": new, "tokenizer": tokenizer or (SUBWORDS if new.is_encoder_decoder else WORDS)}


def _print_summary(console: Console, stamp: dict[str, Any]) -> None:
    """Print the scores of dev after each epoch."""
    if not stamp["dev"]:
        return
    names = list(stamp["dev"][0])
    table = make_table(numbers=tuple(names))
    for scores in stamp["dev"]:
        table.add_row(str(scores["epoch"]), *(f"{scores[name]:.4g}" for name in names[1:]))
    console.print(table)
    if stamp["facts"]["majority"] is not None:
        console.print(f"The most common label is {stamp['facts']['majority']:.1%} of train.")
