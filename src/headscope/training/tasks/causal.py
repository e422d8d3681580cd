"""Causal language modeling: each token is predicted from those before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.encode import EncodedExample, pad_lists
from headscope.data.tokenizing.masking import IGNORED
from headscope.training.encode import pad_rows, tokenize_examples
from headscope.training.metrics import Metric, make_token_metrics
from headscope.training.task import Answers, Draw, Task


@dataclass(frozen=True)
class Causal(Task):
    """Next-token prediction, without labels; every token but the first of a text is predicted."""

    name = "causal"
    head = "AutoModelForCausalLM"
    main = "perplexity"
    padding_side = "right"  # padding after the text changes no position and no prediction

    @classmethod
    def from_examples(cls, train: Sequence[Example]) -> "Causal":  # noqa: ARG003  (as others)
        """Return the task; it takes any text."""
        return cls()

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Accept any text."""

    def encode(self, tokenizer: Any, examples: Sequence[Example], max_length: int | None) -> list[EncodedExample]:
        """Return token ids; raise InputError for a text with a single token, from which nothing is predicted."""
        rows = tokenize_examples(tokenizer, examples, max_length, stacklevel=4)
        for row, example in zip(rows, examples, strict=True):
            if len(row["input_ids"]) < 2:
                raise InputError(
                    f"The text of example '{example.id}' has {len(row['input_ids'])} token(s), but the next token is "
                    "predicted from those before it. Give it at least two."
                )
        return rows

    def make_batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:  # noqa: ARG002  (as others)
        """Return one padded batch; the labels are its tokens, which models compare with the prediction before."""
        return {
            **pad_rows(tokenizer, rows),
            "labels": pad_lists([row["input_ids"] for row in rows], IGNORED, left=tokenizer.padding_side == "left"),
        }

    def compute_answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return for each example the summed loss of its tokens but the first, their number, and the right ones."""
        labels, logits = batch["labels"][:, 1:], output.logits[:, :-1]
        real = labels != IGNORED
        right = (logits.argmax(-1) == labels) & real
        return {"loss": _sum_losses(logits, labels), "tokens": real.sum(-1), "right": right.sum(-1)}

    def compute_metrics(self, answers: Answers) -> dict[str, Metric]:
        """Return perplexity, mean log-likelihood and accuracy of tokens; texts are resampled."""
        return make_token_metrics(answers)


def _sum_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the summed cross-entropy of each example, in float64; one example at a time, as vocabularies are large."""
    losses = [
        torch.nn.functional.cross_entropy(row.double(), label, ignore_index=IGNORED, reduction="sum")
        for row, label in zip(logits, labels, strict=True)
    ]
    return torch.stack(losses)


@torch.no_grad()
def check_causal(network: Any) -> None:
    """Raise InputError for a model whose predictions depend on later tokens."""
    was_training = network.training
    network.eval()
    try:
        ids = torch.tensor([[1, 2, 3, 4], [1, 5, 6, 7]], device=network.device)
        first, second = network(input_ids=ids).logits[:, 0].float()
    finally:
        network.train(was_training)
    tolerance = 2e-2 if network.dtype in (torch.float16, torch.bfloat16) else 1e-5
    if (first - second).abs().max() > tolerance * first.abs().max():
        raise InputError(
            f"This {type(network).__name__} sees the tokens after the one that it predicts from, so its likelihood of "
            "a text means nothing. Load a causal model, such as a GPT-2, or a BERT with is_decoder=True."
        )
