"""A number for a text or a pair of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.training import metrics
from headscope.training.labels import check_labels
from headscope.training.rows import EncodedExample
from headscope.training.task import Found, Score, Task

METRICS = {"pearson": metrics.pearson, "spearman": metrics.spearman}


@dataclass(frozen=True)
class Regression(Task):
    """Numbers as labels, learned as they are: mean squared error."""

    name = "regression"
    head = "AutoModelForSequenceClassification"
    main = "pearson"

    @classmethod
    def of(cls, train: Sequence[Example]) -> "Regression":
        """The task that these training examples set."""
        check_labels(train, "train", float)
        if len({each.label for each in train}) == 1:
            raise InputError(
                f"All {len(train):,} training examples have the label {train[0].label}, so there is nothing to learn. "
                "Give examples with other labels."
            )
        return cls()

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Labels are there, and numbers."""
        check_labels(examples, where, float)

    def configure(self, config: Any) -> None:
        """One output."""
        config.num_labels = 1
        config.problem_type = "regression"

    def rows(self, tokenizer: Any, examples: Sequence[Example], longest: int | None) -> list[EncodedExample]:
        """Labels as real numbers, also where all are whole."""
        return [{**row, "labels": float(row["labels"])} for row in super().rows(tokenizer, examples, longest)]

    def answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The number that the model gives."""
        return {"prediction": output.logits[:, 0], "label": batch["labels"]}

    def values(self, found: Found) -> dict[str, float]:
        """Pearson's and Spearman's correlation."""
        return {name: float(metric(*_pairs(found))) for name, metric in METRICS.items()}

    def scores(self, found: Found) -> dict[str, Score]:
        """With the bootstrap's intervals."""
        return {
            name: Score(value, *metrics.middle(metrics.drawn_again(METRICS[name], *_pairs(found))), "bootstrap")
            for name, value in self.values(found).items()
        }


def _pairs(found: Found) -> tuple[Shaped[np.ndarray, " example"], Shaped[np.ndarray, " example"]]:
    return found["label"].astype(float), found["prediction"].astype(float)
