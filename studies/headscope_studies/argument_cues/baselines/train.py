"""Train a baseline on encoded examples, and answer others with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.engine.model import Model
from headscope.training.encode import require_padding
from headscope.training.finetuning.head import seed_all
from headscope.training.predict import predict
from headscope.training.task import Answers, Task
from headscope_studies.argument_cues.baselines.networks import BASELINES, Baseline, build_baseline


@dataclass(frozen=True)
class BaselineSettings:
    """How baselines are trained: AdamW with a learning rate that decays linearly to 0."""

    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 1e-3
    max_length: int = 128


@dataclass(frozen=True)
class TrainedBaseline:
    """A trained network with the tokenizer and the task that it was trained for."""

    network: Baseline
    tokenizer: Any
    task: Task
    max_length: int

    def answer(self, examples: Sequence[Example]) -> Answers:
        """Return predictions, labels, logits and margins, in the order of the examples."""
        rows = self.task.encode(self.tokenizer, self.task.prepare(examples, "the data"), self.max_length)
        return predict(self.network, self.tokenizer, self.task, rows, batch_size=128)


def train_baseline(
    name: str,
    model: Model,
    task: Task,
    train: Sequence[Example],
    settings: BaselineSettings,
    *,
    seed: int = 0,
    device: str | None = None,
) -> TrainedBaseline:
    """Train a bag of vectors or a BiLSTM on the input embeddings of a model, which stay as they are.

    Examples, batches and metrics are those of the task, so that the baseline sees what the model sees. On a CPU the
    same settings give the same weights.
    """
    if name not in BASELINES:
        raise InputError(f"No baseline is called '{name}'. Known: {', '.join(BASELINES)}.")
    tokenizer = require_padding(model.tokenizer, model.network.config, task.padding_side)
    rows = task.encode(tokenizer, train, settings.max_length)
    with seed_all(seed):
        network = build_baseline(name, model.network, task).to(device or model.device)
        order = torch.Generator().manual_seed(seed)
        steps = settings.epochs * -(-len(rows) // settings.batch_size)
        weights = [weight for weight in network.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=settings.learning_rate, weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
        network.train()
        for epoch in range(1, settings.epochs + 1):
            indices = torch.randperm(len(rows), generator=order).tolist()
            for start in range(0, len(rows), settings.batch_size):
                batch_rows = [rows[index] for index in indices[start : start + settings.batch_size]]
                batch = task.make_batch(tokenizer, batch_rows, (seed, epoch))
                _step(network, {name: tensor.to(network.device) for name, tensor in batch.items()}, optimizer)
                schedule.step()
    return TrainedBaseline(network.eval(), tokenizer, task, settings.max_length)


def _step(network: Baseline, batch: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
    labels = batch.pop("labels")
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(network(**batch).logits, labels)
    loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
    optimizer.step()
