"""The loss of each example of a batch, through which gradients flow."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.data.tokenizing.masking import IGNORED
from headscope.training.task import Task

Losses = tuple[Tensor, Tensor]
"""The summed loss of each example, and the number of its terms."""


def compute_losses(task: Task, output: Any, batch: Mapping[str, Tensor]) -> Losses:
    """Return the summed training loss of each example, and its number of terms.

    The loss of an example is their quotient; that of a batch is the quotient of their sums.
    """
    return LOSSES.get(task.name, _of_classes)(output.logits, batch["labels"])


def sum_token_losses(
    logits: Float[Tensor, "batch token vocabulary"], labels: Int[Tensor, "batch token"]
) -> tuple[Float[Tensor, " batch"], Int[Tensor, " batch"]]:
    """Return the summed cross-entropy of the labeled tokens of each example, and their number."""
    loss = torch.nn.functional.cross_entropy(logits.mT, labels, ignore_index=IGNORED, reduction="none")
    return loss.sum(-1), (labels != IGNORED).sum(-1)


def _of_next_tokens(logits: Tensor, labels: Tensor) -> Losses:
    return sum_token_losses(logits[:, :-1], labels[:, 1:])


def _of_classes(logits: Tensor, labels: Tensor) -> Losses:
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none"), torch.ones_like(labels)


def _of_numbers(logits: Tensor, labels: Tensor) -> Losses:
    error = logits[:, 0] - labels.to(logits)
    return error**2, torch.ones_like(error)


LOSSES: dict[str, Callable[[Tensor, Tensor], Losses]] = {
    "regression": _of_numbers,
    "mlm": sum_token_losses,
    "causal": _of_next_tokens,
    "translation": sum_token_losses,
}
"""By the name of the task; all others have classes."""
