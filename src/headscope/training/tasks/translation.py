"""Translation: from one text to another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.encode import EncodedExample, pad_lists, warn_truncated
from headscope.data.tokenizing.masking import IGNORED
from headscope.training.encode import pad_rows, tokenise_examples
from headscope.training.losses import sum_token_losses
from headscope.training.metrics import Metric, divide_sums, make_sum_metric
from headscope.training.task import Answers, Draw, Task, run_network
from headscope.training.translate import translate
from headscope.training.translation_metrics import bleu_from_sums, chrf_from_sums, count_matches


@dataclass(frozen=True)
class Translation(Task):
    """Write the second text of a pair after reading the first: translation, or any other pair of texts.

    Scores are BLEU and chrF of greedy translations, by sacrebleu, and the mean log-likelihood of a reference token
    given those before it, in nats, which also shows small changes.
    """

    name = "translation"
    head = "AutoModelForSeq2SeqLM"
    main = "bleu"
    reads_labels = True
    padding_side = "right"

    @classmethod
    def from_examples(cls, train: Sequence[Example]) -> "Translation":
        """Return the task; the training examples are checked."""
        task = cls()
        task.check(train, "train")
        return task

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Raise InputError unless every example has a second text."""
        missing = [example for example in examples if not (example.pair or "").strip()]
        if missing:
            raise InputError(
                f"{len(missing):,} of the {len(examples):,} examples of {where} have no second text, such as "
                f"'{missing[0].id}', but it is what the model learns to write. Name the column that holds it: "
                "hs.read(…, pair=…), in the shell --pair."
            )

    def encode(self, tokenizer: Any, examples: Sequence[Example], max_length: int | None) -> list[EncodedExample]:
        """Return the token ids of both texts, and the second text itself."""
        rows = tokenise_examples(tokenizer, [replace(example, pair=None) for example in examples], max_length)
        references = [example.pair for example in examples]
        targets = tokenizer(text_target=references, padding=False, verbose=False)["input_ids"]
        if warn_truncated(examples, list(map(len, targets)), max_length, "were truncated", stacklevel=4):
            options = {"truncation": True, "max_length": max_length}
            targets = tokenizer(text_target=references, padding=False, **options)["input_ids"]
        return [
            {**row, "labels": target, "reference": reference}
            for row, target, reference in zip(rows, targets, references, strict=True)
        ]

    def make_batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:  # noqa: ARG002  (as others)
        """Return one padded batch; the model makes the inputs of its decoder from the labels."""
        inputs = pad_rows(tokenizer, rows)
        inputs.pop("token_type_ids", None)  # which no encoder-decoder reads
        labels = pad_lists([row["labels"] for row in rows], IGNORED, left=False)
        return {**inputs, "labels": labels, "decoder_attention_mask": (labels != IGNORED).long()}

    def answer(
        self, network: Any, tokenizer: Any, rows: Sequence[EncodedExample], batch: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor | Shaped[np.ndarray, "..."]]:
        """Return the translation of each example, its counts for BLEU and chrF, and the loss of the reference."""
        translations = translate(network, tokenizer, batch)
        references = [row["reference"] for row in rows]
        bleu, chrf = count_matches(translations, references)
        return {
            "prediction": np.array(translations, dtype=object),
            "reference": np.array(references, dtype=object),
            **self.compute_answers(run_network(self, network, batch), batch),
            "bleu_counts": bleu,
            "chrf_counts": chrf,
        }

    def compute_answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the summed loss of the tokens of each reference, and their number."""
        loss, tokens = sum_token_losses(output.logits, batch["labels"])
        return {"loss": loss.double(), "tokens": tokens}

    def compute_metrics(self, answers: Answers) -> dict[str, Metric]:
        """Return BLEU, chrF and the mean log-likelihood of a reference token."""
        names = ("loss", "tokens", "bleu_counts", "chrf_counts")
        loss, tokens, bleu, chrf = (answers[name].astype(float) for name in names)
        return {
            "bleu": make_sum_metric(bleu_from_sums, bleu),
            "chrf": make_sum_metric(chrf_from_sums, chrf),
            "log_likelihood": make_sum_metric(divide_sums, np.stack([-loss, tokens], -1)),
        }
