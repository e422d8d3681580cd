"""Masked language modeling (Devlin et al., 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.encode import EncodedExample, pad_lists
from headscope.data.tokenizing.masking import IGNORED, mask_tokens
from headscope.training.encode import pad_rows, tokenize_examples
from headscope.training.metrics import Metric, make_token_metrics
from headscope.training.task import Answers, Draw, Task


@dataclass(frozen=True)
class Mlm(Task):
    """Masked language modeling, without labels. Masks are drawn anew in each epoch, and once for scores."""

    name = "mlm"
    head = "AutoModelForMaskedLM"
    main = "perplexity"

    @classmethod
    def from_examples(cls, train: Sequence[Example]) -> "Mlm":  # noqa: ARG003  (as others)
        """Return the task; it takes any text."""
        return cls()

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Accept any text."""

    def encode(self, tokenizer: Any, examples: Sequence[Example], max_length: int | None) -> list[EncodedExample]:
        """Return token ids, and the index of each example, which seeds its masks."""
        if tokenizer.mask_token_id is None:
            raise InputError("The tokenizer has no mask token, so no word can be masked. Choose another model or task.")
        rows = tokenize_examples(tokenizer, examples, max_length, stacklevel=4)
        for row, example in zip(rows, examples, strict=True):
            if all(row["special_tokens_mask"]):
                raise InputError(
                    f"The text of example '{example.id}' has no tokens but special ones. Give it at least one word."
                )
        return [{**row, "index": index} for index, row in enumerate(rows)]

    def make_batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:
        """Return one padded batch with masked tokens; the same seed, epoch and index give the same masks."""
        masked = [_mask_row(tokenizer, row, np.random.default_rng((*draw, row["index"]))) for row in rows]
        labels = pad_lists([row["labels"] for row in masked], IGNORED, left=tokenizer.padding_side == "left")
        return {**pad_rows(tokenizer, masked), "labels": labels}

    def compute_answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return for each example the summed loss of its selected tokens, their number, and the correct ones."""
        labels = batch["labels"]
        selected = labels != IGNORED
        logits = output.logits[selected].double()
        loss = torch.zeros(labels.shape, dtype=torch.float64, device=labels.device)
        loss[selected] = torch.nn.functional.cross_entropy(logits, labels[selected], reduction="none")
        right = torch.zeros_like(selected)
        right[selected] = logits.argmax(-1) == labels[selected]
        return {"loss": loss.sum(-1), "tokens": selected.sum(-1), "right": right.sum(-1)}

    def compute_metrics(self, answers: Answers) -> dict[str, Metric]:
        """Return perplexity and the accuracy of selected tokens; texts are resampled, as their tokens are dependent."""
        return make_token_metrics(answers)


def _mask_row(tokenizer: Any, row: EncodedExample, random: np.random.Generator) -> EncodedExample:
    """Return a row with some of its tokens masked, and these as its labels."""
    ids, labels = mask_tokens(tokenizer, row["input_ids"], row["special_tokens_mask"], random)
    return {**row, "input_ids": ids, "labels": labels}
