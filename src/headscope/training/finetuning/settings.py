"""Options of a fine-tuning, and the complete, checked settings made from them."""

import math
from dataclasses import dataclass, fields
from typing import TypedDict

from headscope.core.checks import check_seed
from headscope.core.errors import InputError, unknown_name


class TrainingOptions(TypedDict, total=False):
    """Keyword options of `hs.finetune` that decide the tuned weights."""

    epochs: int
    batch_size: int
    max_length: int  # truncate texts to this number of tokens
    learning_rate: float  # the maximum; it decays linearly to 0
    warmup: float  # share of all steps in which the learning rate rises to its maximum
    weight_decay: float
    seed: int  # of the new head, the order of examples, dropout and masks
    from_scratch: bool  # random weights with the model's config
    limit: int | None  # number of training examples, sampled at random


@dataclass(frozen=True)
class TrainingSettings:
    """All options, with the defaults that all studies share."""

    epochs: int = 3
    batch_size: int = 8
    max_length: int = 128
    learning_rate: float = 2e-5
    warmup: float = 0.0
    weight_decay: float = 0.0
    seed: int = 0
    from_scratch: bool = False
    limit: int | None = None


def make_training_settings(options: TrainingOptions) -> TrainingSettings:
    """Return complete settings; raise InputError for an unknown option or a value out of range."""
    names = [field.name for field in fields(TrainingSettings)]
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
