"""Options of a fine-tuning, and the complete, checked settings made from them."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any

from headscope.core.checks import check_seed
from headscope.core.errors import InputError, unknown_name
from headscope.core.options import ANY_MODEL, DEVICE, OVERWRITE, PROGRESS, describe, option

TrainingOptions = dict[str, Any]
"""Fields of TrainingSettings by name."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The options that decide the tuned weights, with the defaults that all studies share."""

    epochs: int = option(3, "Number of training epochs.")
    batch_size: int = option(8, "Number of examples per step.")
    max_length: int = option(128, "Truncate texts to this number of tokens.")
    learning_rate: float = option(2e-5, "Maximum learning rate; it decays linearly to 0.")
    warmup: float = option(0.0, "Share of all steps with a rising learning rate.")
    weight_decay: float = option(0.0, "Weight decay of AdamW.")
    seed: int = option(0, "Random seed of the new head, the order, dropout and masks.")
    from_scratch: bool = option(False, "Start from random weights.")
    limit: int | None = option(None, "Number of training examples, sampled at random. Default: all.")


@dataclass(frozen=True)
class FinetuneOptions(TrainingSettings):
    """What `hs.finetune` takes."""

    model: Any = field(metadata=describe(f"{ANY_MODEL} Or a config of transformers, for a new model."))
    train: Any = field(metadata=describe("Training examples: anything that `hs.read` reads."))
    _: KW_ONLY
    out: Path | str = field(metadata=describe("Output folder of the model."))
    dev: Any = option(None, "Data to score after each epoch.")
    task: str = option("auto", "classification, regression, choice, translation, mlm or causal. auto: from the labels.")
    tokenizer: Any = option(
        None, "Of a new model: words or subwords. Default: subwords for encoder-decoders, else words."
    )
    keep_checkpoints: bool = option(False, "Keep the model of every epoch as OUT/epoch-1, …")
    checkpoints: int = option(0, "Number of models to keep at equal distances, as OUT/step-24, …")
    device: str | None = option(None, DEVICE)
    resume: bool = option(False, "Resume an interrupted run.")
    overwrite: bool = option(False, OVERWRITE)
    progress: bool = option(True, PROGRESS, shell=False)


def make_training_settings(options: Mapping[str, Any]) -> TrainingSettings:
    """Return complete settings; raise InputError for an unknown option or a value out of range."""
    names = [item.name for item in fields(TrainingSettings)]
    for name in options:
        if name not in names:
            raise unknown_name("option of hs.finetune", name, names)
    settings = TrainingSettings(**options)
    for name, minimum in (("epochs", 1), ("batch_size", 1), ("max_length", 3), ("limit", 2)):
        value = getattr(settings, name)
        if value is not None and value < minimum:
            raise InputError(f"{name}={value} is too small. Give at least {minimum}.")
    check_seed(settings.seed)
    if not 0 < settings.learning_rate < 1:
        raise InputError(f"learning_rate={settings.learning_rate} is not between 0 and 1. Usual ones are near 2e-5.")
    if not 0 <= settings.warmup < 1:
        raise InputError(f"warmup={settings.warmup} is not a share of all steps. Give 0 to below 1, such as 0.1.")
    if not 0 <= settings.weight_decay < math.inf:
        raise InputError(f"weight_decay={settings.weight_decay} is not a number from 0 on. Give 0 or more.")
    return settings
