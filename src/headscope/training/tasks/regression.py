"""A number for a text or a pair of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from headscope.core.example import Example
from headscope.data.labels import check_not_alphabetical
from headscope.data.tokenizing.encode import EncodedExample
from headscope.training.labels import check_labels, check_several_labels
from headscope.training.metrics import Metric, make_example_metric, make_pearson
from headscope.training.task import Answers, Task
from headscope.uncertainty.correlation import spearman


@dataclass(frozen=True)
class Regression(Task):
    """Numbers as labels, learned with mean squared error and without rescaling."""

    name = "regression"
    head = "AutoModelForSequenceClassification"
    main = "pearson"

    @classmethod
    def from_examples(cls, train: Sequence[Example]) -> "Regression":
        """Return the task of these training examples, which are checked."""
        task = cls()
        task.check(train, "train")
        check_several_labels(train)
        return task

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Raise InputError unless every example has a number as its label."""
        check_labels(examples, where, float)
        check_not_alphabetical(examples, where, "a number")

    def configure(self, config: Any) -> None:
        """Set one output."""
        config.num_labels = 1
        config.problem_type = "regression"

    def encode(self, tokenizer: Any, examples: Sequence[Example], max_length: int | None) -> list[EncodedExample]:
        """Return token ids with labels as floats, also where all labels are integers."""
        rows = super().encode(tokenizer, examples, max_length)
        return [{**row, "labels": float(row["labels"])} for row in rows]

    def compute_answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the predicted numbers."""
        return {"prediction": output.logits[:, 0], "label": batch["labels"]}

    def compute_metrics(self, answers: Answers) -> dict[str, Metric]:
        """Return Pearson's and Spearman's correlation."""
        columns = answers["label"].astype(float), answers["prediction"].astype(float)
        return {"pearson": make_pearson(*columns), "spearman": make_example_metric(spearman, *columns)}
