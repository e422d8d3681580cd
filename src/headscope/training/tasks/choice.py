"""The correct one of several texts that follow a first text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.data.labels import check_not_alphabetical
from headscope.data.tokenizing.encode import EncodedExample
from headscope.training.encode import pad_rows, tokenize_examples
from headscope.training.labels import check_labels, check_several_labels
from headscope.training.metrics import Metric, make_accuracy
from headscope.training.task import Answers, Draw, Task


@dataclass(frozen=True)
class Choice(Task):
    """Multiple choice: each choice (column choices) is read after the text, and the largest logit is the answer.

    As in Niven & Kao (2019) for ARCT: reason and claim are the first segment, a warrant is the second. Where the text
    of every example is empty, choices are read alone.
    """

    choices: int

    name = "choice"
    head = "AutoModelForMultipleChoice"
    main = "accuracy"

    @classmethod
    def from_examples(cls, train: Sequence[Example]) -> "Choice":
        """Return the task of these training examples, which are checked."""
        task = cls(len(train[0].columns.get("choices", ())))
        task.check(train, "train")
        check_several_labels(train)
        return task

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Raise InputError unless all examples have as many choices, and a label that is one of them."""
        check_labels(examples, where, int)
        check_not_alphabetical(examples, where, "the index of the right choice")
        for example in examples:
            choices = example.columns.get("choices")
            if not choices:
                raise InputError(
                    f"Example '{example.id}' of {where} has no choices. Name the columns that hold them: "
                    "hs.read(…, choices=[…]), in the shell --choices."
                )
            if len(choices) != self.choices:
                raise InputError(
                    f"Example '{example.id}' of {where} has {len(choices)} choices, but others have {self.choices}. "
                    "All must have as many."
                )
            if example.pair is not None:
                raise InputError(
                    f"Example '{example.id}' of {where} has choices and a second text. Put both texts into one."
                )
        unknown = sorted({example.label for example in examples if example.label not in range(self.choices)}, key=str)
        if unknown:
            raise InputError(
                f"In {where} there are labels {join_words(unknown, limit=6)}, where 0 to {self.choices - 1} are "
                "expected: the index of the right choice."
            )

    def encode(self, tokenizer: Any, examples: Sequence[Example], max_length: int | None) -> list[EncodedExample]:
        """Return the token ids of the text with each of its choices."""
        alone = not any(example.text.strip() for example in examples)
        inputs = [
            Example(example.id, choice if alone else example.text, None if alone else choice)
            for example in examples
            for choice in example.columns["choices"]
        ]
        rows = tokenize_examples(tokenizer, inputs, max_length, stacklevel=5)
        groups = [rows[start : start + self.choices] for start in range(0, len(rows), self.choices)]
        return [{"parts": group, "labels": example.label} for group, example in zip(groups, examples, strict=True)]

    def make_batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:  # noqa: ARG002  (as others)
        """Return one padded batch with an axis for the choices."""
        flat = pad_rows(tokenizer, [choice for row in rows for choice in row["parts"]])
        batch = {name: tensor.view(len(rows), self.choices, -1) for name, tensor in flat.items()}
        return {**batch, "labels": torch.tensor([row["labels"] for row in rows])}

    def compute_metrics(self, answers: Answers) -> dict[str, Metric]:
        """Return the accuracy."""
        return {"accuracy": make_accuracy(answers["label"], answers["prediction"])}
