"""What a model is tuned for and scored on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from headscope.core.example import Example
from headscope.training.rows import EncodedExample, padded, tokenised

Found = dict[str, Shaped[np.ndarray, "..."]]
"""What a model said about each example, by name; the first axis is the example."""

Draw = tuple[int, int]
"""A seed and an epoch: where chance comes from, for tasks that need some."""


@dataclass(frozen=True)
class Score:
    """A metric with its 95 % interval, and how that was found."""

    value: float
    low: float
    high: float
    interval: str


@dataclass(frozen=True)
class Task(ABC):
    """One kind of task: which head a model needs, what it reads, and how good its answers are."""

    name: ClassVar[str]
    head: ClassVar[str]  # the class of transformers that makes models with such a head
    main: ClassVar[str]  # the metric that stands for all

    @abstractmethod
    def check(self, examples: Sequence[Example], where: str) -> None:
        """Refuse examples that this task cannot take; `where` is what they are, such as "dev"."""

    @abstractmethod
    def configure(self, config: Any) -> None:
        """Tell a model's config about this task."""

    @abstractmethod
    def answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What one batch's output says about each example."""

    @abstractmethod
    def values(self, found: Found) -> dict[str, float]:
        """Every metric that applies."""

    @abstractmethod
    def scores(self, found: Found) -> dict[str, Score]:
        """The same with their intervals."""

    def facts(self) -> dict[str, Any]:
        """What is known of the task, as plain data."""
        return {"task": self.name, **asdict(self)}

    def rows(self, tokenizer: Any, examples: Sequence[Example], longest: int | None) -> list[EncodedExample]:
        """The examples as numbers, with their labels."""
        rows = tokenised(tokenizer, examples, longest)
        return [{**row, "labels": example.label} for row, example in zip(rows, examples, strict=True)]

    def batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:  # noqa: ARG002  (masks draw)
        """One batch as a model takes it."""
        import torch

        return {**padded(tokenizer, rows), "labels": torch.tensor([row["labels"] for row in rows])}
