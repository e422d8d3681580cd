"""What a model says about every example."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.engine.progress import show_progress
from headscope.training.rows import EncodedExample, widened
from headscope.training.task import Found, Task

FIXED = 0
"""The epoch that scores are drawn as, where a task draws; training counts from 1."""


@torch.no_grad()
def predicted(
    network: Any,
    tokenizer: Any,
    task: Task,
    rows: Sequence[EncodedExample],
    *,
    batch_size: int,
    pad_to: int | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> Found:
    """The answers in the order of the rows; rows of like length share a batch, longest first."""
    was, draw = network.training, (seed, FIXED)
    order = sorted(range(len(rows)), key=lambda place: (-_length(rows[place]), place))
    parts: list[dict[str, Any]] = []
    network.eval()
    try:
        with show_progress(len(rows), quiet=quiet) as advance:
            for start in range(0, len(order), batch_size):
                places = order[start : start + batch_size]
                batch = task.batch(tokenizer, [rows[place] for place in places], draw)
                batch = batch if pad_to is None else widened(tokenizer, batch, pad_to)
                here = {name: each.to(network.device) for name, each in batch.items()}
                output = network(**{name: each for name, each in here.items() if name != "labels"})
                parts.append(task.answers(output, here))
                advance(len(places))
    finally:
        network.train(was)
    back = np.argsort(order)
    return {name: _plain(torch.cat([part[name] for part in parts]))[back] for name in parts[0]}


def _plain(values: Tensor) -> Any:
    """As numpy holds it, which knows no bfloat16."""
    return (values.float() if values.dtype in (torch.float16, torch.bfloat16) else values).cpu().numpy()


def _length(row: EncodedExample) -> int:
    return max(len(part["input_ids"]) for part in row.get("parts", (row,)))
