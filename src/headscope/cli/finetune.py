"""`headscope finetune`: fine-tune a model for a task."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from headscope.cli.shared.console import load_library, make_table
from headscope.cli.shared.options import Model, add_options, read_examples, select_options
from headscope.core.errors import InputError
from headscope.data.reading.options import ReadOptions
from headscope.training.finetuning.settings import FinetuneOptions


@add_options(FinetuneOptions, ReadOptions)
def command(
    train: Annotated[str, typer.Argument(help="A file (.jsonl .json .csv .tsv .txt .parquet) or glue:mrpc:train@DIR.")],
    model: Model = None,
    config: Annotated[
        Path | None, typer.Option(help="Train a new model with this config (JSON, as transformers' config.json).")
    ] = None,
    **options: Any,
) -> None:
    """Fine-tune a model for a task.

    headscope finetune glue:mrpc:train@GLUE --dev glue:mrpc:dev@GLUE -o tuned
    """
    with load_library() as hs:
        examples = read_examples(train, options)
        if options["dev"] is not None:
            options["dev"] = read_examples(options["dev"], options)
        new, options["tokenizer"] = _read_new_model(config, model, options["tokenizer"])
    hs.finetune(new, examples, **select_options(options, FinetuneOptions))
    console, out = Console(highlight=False), options["out"]
    _print_summary(console, json.loads((out / "finetune.json").read_text(encoding="utf-8")))
    console.print(f"Wrote {out}", soft_wrap=True)


def _read_new_model(config: Path | None, model: str | None, tokenizer: str | None) -> tuple[Any, str | None]:
    """Return what is trained and its tokenizer: a new model with this config, or the given model."""
    if config is None:
        return model, tokenizer
    if model is not None:
        raise InputError(
            f"Both --config {config} and --model {model} are given, but one model is trained. Leave one out."
        )
    from headscope.training.finetuning.new_model import SUBWORDS, WORDS, read_config

    new = read_config(config)
    return new, tokenizer or (SUBWORDS if new.is_encoder_decoder else WORDS)


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
