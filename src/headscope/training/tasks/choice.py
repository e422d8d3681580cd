"""The right one of several texts that go with a first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.data.tokenizing.encode import warn_truncated
from headscope.training.labels import check_labels
from headscope.training.rows import EncodedExample, encoded, padded
from headscope.training.task import Draw, Found, Score, Task
from headscope.training.tasks.classification import chosen, share_right


@dataclass(frozen=True)
class Choice(Task):
    """Each choice (column choices) is read after the text, and the largest of their logits is the answer.

    As Niven & Kao (2019) lay ARCT out: reason and claim are the first segment, a warrant the second. A text that is
    empty in every example is left out, so that the choices stand alone.
    """

    choices: int

    name = "choice"
    head = "AutoModelForMultipleChoice"
    main = "accuracy"

    @classmethod
    def of(cls, train: Sequence[Example]) -> "Choice":
        """The task that these training examples set."""
        task = cls(len(train[0].columns.get("choices", ())))
        task.check(train, "train")
        if len({each.label for each in train}) == 1:
            raise InputError(
                f"In all {len(train):,} training examples choice {train[0].label} is the right one, so there is "
                "nothing to learn. Give examples with others."
            )
        return task

    def check(self, examples: Sequence[Example], where: str) -> None:
        """As many choices everywhere, and a label that is one of them."""
        check_labels(examples, where, int)
        for each in examples:
            found = each.columns.get("choices")
            if not found:
                raise InputError(
                    f"Example '{each.id}' of {where} has no choices. Name the columns that hold them: "
                    "hs.read(…, choices=[…]), in the shell --choices."
                )
            if len(found) != self.choices:
                raise InputError(
                    f"Example '{each.id}' of {where} has {len(found)} choices, but others have {self.choices}. All "
                    "must have as many."
                )
            if each.pair is not None:
                raise InputError(
                    f"Example '{each.id}' of {where} has choices and a second text. Put both texts into one."
                )
        strange = sorted({each.label for each in examples if each.label not in range(self.choices)}, key=str)
        if strange:
            raise InputError(
                f"In {where} there are labels {join_words(strange, limit=6)}, where 0 to {self.choices - 1} are "
                "expected: which choice is right."
            )

    def configure(self, config: Any) -> None:
        """A config needs to know nothing more: there is one output, however many choices."""

    def rows(self, tokenizer: Any, examples: Sequence[Example], longest: int | None) -> list[EncodedExample]:
        """The text with each of its choices."""
        alone = not any(each.text.strip() for each in examples)
        pairs = [(each.text, choice) for each in examples for choice in each.columns["choices"]]
        firsts: list[str | list[str]] = [choice if alone else text for text, choice in pairs]
        seconds = [None if alone else choice for _, choice in pairs]
        lengths = [len(row["input_ids"]) for row in encoded(tokenizer, firsts, seconds, longest=None)]
        owners = [each for each in examples for _ in each.columns["choices"]]
        warn_truncated(owners, lengths, longest, "were cut", stacklevel=4)
        parts = encoded(tokenizer, firsts, seconds, longest=longest)
        groups = [parts[start : start + self.choices] for start in range(0, len(parts), self.choices)]
        return [{"parts": group, "labels": each.label} for group, each in zip(groups, examples, strict=True)]

    def batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:  # noqa: ARG002  (as others)
        """One batch with an axis for the choices."""
        flat = padded(tokenizer, [part for row in rows for part in row["parts"]])
        folded = {name: each.view(len(rows), self.choices, -1) for name, each in flat.items()}
        return {**folded, "labels": torch.tensor([row["labels"] for row in rows])}

    def answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The choice with the largest logit, and by how much the right one leads."""
        return chosen(output.logits, batch["labels"])

    def values(self, found: Found) -> dict[str, float]:
        """Accuracy."""
        return {"accuracy": share_right(found).value}

    def scores(self, found: Found) -> dict[str, Score]:
        """With Wilson's interval."""
        return {"accuracy": share_right(found)}
