"""The interface of a task that a model is tuned for and scored on."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from headscope.core.example import Example
from headscope.data.tokenizing.encode import EncodedExample
from headscope.training.encode import pad_rows, tokenize_examples
from headscope.training.metrics import Metric

Answers = dict[str, Shaped[np.ndarray, "..."]]
"""Outputs of a model by name; the first axis is the example."""

Draw = tuple[int, int]
"""A seed and an epoch, for tasks that draw random numbers."""


@dataclass(frozen=True)
class Task(ABC):
    """One kind of task: the head it needs, the inputs of the model, and the metrics of its answers."""

    name: ClassVar[str]
    head: ClassVar[str]  # the auto class of transformers for models with this head
    main: ClassVar[str]  # the main metric
    reads_labels: ClassVar[bool] = False  # whether the network makes inputs of its decoder from them
    padding_side: ClassVar[str | None] = None  # where the task needs padding; None for that of the tokenizer

    @classmethod
    @abstractmethod
    def from_examples(cls, train: Sequence[Example]) -> "Task":
        """Return the task of these training examples, which are checked."""

    @abstractmethod
    def check(self, examples: Sequence[Example], where: str) -> None:
        """Raise InputError for examples that do not fit the task; `where` names them, such as "dev"."""

    def prepare(self, examples: Sequence[Example], where: str) -> list[Example]:
        """Return the examples with labels as the task numbers them; raise InputError as `check` does."""
        self.check(examples, where)
        return list(examples)

    @abstractmethod
    def compute_metrics(self, answers: Answers) -> dict[str, Metric]:
        """Return every metric that applies."""

    def answer(
        self,
        network: Any,
        tokenizer: Any,  # noqa: ARG002  (for tasks whose answers are texts)
        rows: Sequence[EncodedExample],  # noqa: ARG002  (as tokenizer)
        batch: Mapping[str, Tensor],
    ) -> Mapping[str, Tensor | Shaped[np.ndarray, "..."]]:
        """Return the answers of a network to one batch, which was made from these rows."""
        return self.compute_answers(run_network(self, network, batch), batch)

    def compute_answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the answers to one batch: the class with the largest logit, the logits and the margin.

        The margin is the label's logit minus the largest of the others.
        """
        logits, labels = output.logits, batch["labels"]
        is_label = torch.nn.functional.one_hot(labels, logits.shape[-1]).bool()
        largest_other = logits.masked_fill(is_label, -torch.inf).amax(-1)
        margin = logits.gather(-1, labels[:, None])[:, 0] - largest_other
        return {"prediction": logits.argmax(-1), "label": labels, "logits": logits, "margin": margin}

    def configure(self, config: Any) -> None:  # noqa: B027  (a hook; most heads need nothing)
        """Set the fields of a model's config that the head needs."""

    def encode(self, tokenizer: Any, examples: Sequence[Example], max_length: int | None) -> list[EncodedExample]:
        """Return the examples as token ids, with their labels."""
        rows = tokenize_examples(tokenizer, examples, max_length)
        return [{**row, "labels": example.label} for row, example in zip(rows, examples, strict=True)]

    def make_batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:  # noqa: ARG002  (for masks)
        """Return one padded batch."""
        return {**pad_rows(tokenizer, rows), "labels": torch.tensor([row["labels"] for row in rows])}


def run_network(task: Task, network: Any, batch: Mapping[str, Tensor]) -> Any:
    """Return the output of a network for one batch."""
    options = {"use_cache": False} if "use_cache" in inspect.signature(network.forward).parameters else {}
    return network(
        **{name: tensor for name, tensor in batch.items() if name != "labels" or task.reads_labels}, **options
    )


def describe_task(task: Task) -> dict[str, Any]:
    """Return the task as plain data."""
    return {"task": task.name, **asdict(task)}
