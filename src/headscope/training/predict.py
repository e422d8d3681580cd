"""Run a model on every example."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped

from headscope.core.progress import show_progress
from headscope.data.tokenizing.encode import EncodedExample
from headscope.training.encode import pad_batch
from headscope.training.task import Answers, Task

SCORE_EPOCH = 0
"""The epoch that seeds the random numbers of scores; training counts from 1."""

AnswerBatch = Callable[[Any, Any, Sequence[EncodedExample], Mapping[str, torch.Tensor]], Mapping[str, Any]]
"""From a network, a tokenizer, rows and the batch that was made of them to answers."""


@torch.no_grad()
def predict(
    network: Any,
    tokenizer: Any,
    task: Task,
    rows: Sequence[EncodedExample],
    *,
    batch_size: int,
    pad_to: int | None = None,
    seed: int = 0,
    quiet: bool = True,
    answer: AnswerBatch | None = None,
) -> Answers:
    """Return the answers in the order of the rows; rows of similar length share a batch, longest first.

    `answer` gives those to one batch; by default the task does.
    """
    was_training, draw = network.training, (seed, SCORE_EPOCH)
    batches, batch_answers = plan_batches(rows, batch_size), list[Mapping[str, Any]]()
    network.eval()
    try:
        with show_progress(len(rows), quiet=quiet) as advance:
            for indices in batches:
                batch_rows = [rows[index] for index in indices]
                batch = task.make_batch(tokenizer, batch_rows, draw)
                batch = batch if pad_to is None else pad_batch(tokenizer, batch, pad_to)
                batch = {name: tensor.to(network.device) for name, tensor in batch.items()}
                batch_answers.append((answer or task.answer)(network, tokenizer, batch_rows, batch))
                advance(len(indices))
    finally:
        network.train(was_training)
    order = np.argsort([index for indices in batches for index in indices])
    return {name: _join([answers[name] for answers in batch_answers])[order] for name in batch_answers[0]}


def plan_batches(rows: Sequence[EncodedExample], batch_size: int) -> list[list[int]]:
    """Return the indices of the rows of each batch; rows of similar length share a batch, longest first."""
    lengths = [max(len(choice["input_ids"]) for choice in row.get("parts", (row,))) for row in rows]
    order = sorted(range(len(rows)), key=lambda index: (-lengths[index], index))
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def _join(batch_answers: list[Any]) -> Shaped[np.ndarray, "example ..."]:
    """Return the answers to all batches as one array; those that are no tensors, such as texts, are arrays already."""
    if not isinstance(batch_answers[0], torch.Tensor):
        return np.concatenate(batch_answers)
    values = torch.cat(batch_answers)
    half = values.dtype in (torch.float16, torch.bfloat16)  # numpy has no bfloat16
    joined: Shaped[np.ndarray, "example ..."] = (values.float() if half else values).cpu().numpy()
    return joined
