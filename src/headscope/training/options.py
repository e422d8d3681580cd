"""What can be said about a fine-tuning beside model, data and task."""

from dataclasses import asdict, dataclass, fields
from typing import Any, TypedDict

from headscope.core.errors import InputError, unknown_name


class TrainingOptions(TypedDict, total=False):
    """What decides the tuned weights."""

    epochs: int  # how often every example is seen
    batch_size: int
    max_length: int  # cut texts to so many tokens
    learning_rate: float  # at its highest; it falls in a line to 0
    warmup: float  # the share of all steps in which it rises to there
    weight_decay: float
    seed: int  # of the new head, the order of examples, dropout and masks
    from_scratch: bool  # forget the weights, keep the config
    limit: int | None  # so many training examples, chosen at random


@dataclass(frozen=True)
class TrainingSettings:
    """The same, complete, with the defaults that all studies share."""

    epochs: int = 3
    batch_size: int = 8
    max_length: int = 128
    learning_rate: float = 2e-5
    warmup: float = 0.0
    weight_decay: float = 0.0
    seed: int = 0
    from_scratch: bool = False
    limit: int | None = None

    def described(self) -> dict[str, Any]:
        """As plain data: what two runs must have in common to be one."""
        return asdict(self)


def settings_of(options: TrainingOptions) -> TrainingSettings:
    """Settings from what a user gave; what makes no sense is refused by name."""
    known = [each.name for each in fields(TrainingSettings)]
    for name in options:
        if name not in known:
            raise unknown_name("option of hs.finetune", name, known)
    found = TrainingSettings(**options)
    for name, least in (("epochs", 1), ("batch_size", 1), ("max_length", 3), ("limit", 2), ("seed", 0)):
        value = getattr(found, name)
        if value is not None and value < least:
            raise InputError(f"{name}={value} is too small. Give at least {least}.")
    if not 0 < found.learning_rate < 1:
        raise InputError(f"learning_rate={found.learning_rate} is not between 0 and 1. Usual ones are near 2e-5.")
    if not 0 <= found.warmup < 1:
        raise InputError(f"warmup={found.warmup} is not a share of all steps. Give one from 0 to below 1, such as 0.1.")
    if found.weight_decay < 0:
        raise InputError(f"weight_decay={found.weight_decay} is negative. Give 0 or more.")
    return found
