"""Translation: from one text to another."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from headscope.core.errors import InputError, require_package
from headscope.core.example import Example
from headscope.data.tokenizing.encode import EncodedExample, pad_lists, warn_truncated
from headscope.data.tokenizing.masking import IGNORED
from headscope.training.encode import pad_rows, tokenize_examples
from headscope.training.losses import sum_token_losses
from headscope.training.metrics import Metric, divide_sums, make_sum_metric
from headscope.training.task import Answers, Draw, Task, run_network

FACTOR, EXTRA = 2, 10
"""A translation has at most FACTOR times as many tokens as its source, and EXTRA more."""

ORDERS = 4  # of the n-grams of words that BLEU counts
CHARACTER_ORDERS = 6  # of the n-grams of characters that chrF counts
BETA = 2  # weight of recall in chrF


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
        rows = tokenize_examples(tokenizer, [replace(example, pair=None) for example in examples], max_length)
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


@torch.no_grad()
def translate(network: Any, tokenizer: Any, batch: Mapping[str, Tensor]) -> list[str]:
    """Return the translation of each text of a batch, without special tokens and surrounding white space.

    At each step the most likely token is added, until the end token or the maximum length of this text, which does not
    depend on the other texts of the batch. Everything else is as the model's generation config says.
    """
    limits = FACTOR * batch["attention_mask"].sum(-1) + EXTRA
    if (positions := getattr(network.config, "max_position_embeddings", None)) is not None:
        limits = limits.clamp(max=positions - 1)
    ids = network.generate(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        generation_config=_make_settings(network, int(limits.max()) + 1),  # the last one may be a forced end
    )
    return [_decode(tokenizer, row[1 : 1 + limit]) for row, limit in zip(ids, limits.tolist(), strict=True)]


def _make_settings(network: Any, max_new_tokens: int) -> Any:
    """Return the model's generation config, set to greedy search."""
    settings = deepcopy(network.generation_config)
    settings.update(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        num_return_sequences=1,
        use_cache=True,
        return_dict_in_generate=False,
    )
    return settings


def _decode(tokenizer: Any, ids: Int[Tensor, " token"]) -> str:
    text: str = tokenizer.decode(ids, skip_special_tokens=True)
    return text.strip()


def count_matches(
    translations: Sequence[str], references: Sequence[str]
) -> tuple[Int[np.ndarray, "example 10"], Int[np.ndarray, "example 18"]]:
    """Return the counts of each translation that BLEU and chrF are computed from, as sacrebleu has them.

    For BLEU: the words of the translation and of the reference, then the matching n-grams of each order, then all
    n-grams of the translation. For chrF, for each order of n-grams of characters: those of the translation, those of
    the reference, and the matching ones.
    """
    metrics = require_package("sacrebleu", "translation", "Scoring translations").metrics
    bleu, chrf = (
        np.array(metric._extract_corpus_statistics(translations, [references]), dtype=np.int64)
        for metric in (metrics.BLEU(force=True), metrics.CHRF(char_order=CHARACTER_ORDERS, beta=BETA))
    )
    return bleu, chrf


def bleu_from_sums(sums: Float[np.ndarray, "*draws 10"]) -> Float[np.ndarray, "*draws"]:
    """Return BLEU in percent (Papineni et al., 2002) from summed counts, smoothed as sacrebleu does by default.

    The precision of an order without matches is 1 / (2 · total), that of the next such order 1 / (4 · total), and so
    on; BLEU is 0 where nothing matches, or where no translation is long enough for an order.
    """
    length, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    missed = (matches == 0) & (totals > 0)
    smoothed = np.where(missed, 0.5 ** np.cumsum(missed, axis=-1), matches)
    precision = smoothed / np.where(totals > 0, totals, 1)
    defined = np.asarray(matches.any(-1) & (totals > 0).all(-1))
    logs = np.log(np.where(defined[..., None], precision, 1.0)).mean(-1)
    brevity = np.minimum(0.0, 1 - reference / np.where(length > 0, length, 1))
    return np.where(defined, 100 * np.exp(logs + brevity), 0.0)


def chrf_from_sums(sums: Float[np.ndarray, "*draws 18"]) -> Float[np.ndarray, "*draws"]:
    """Return chrF in percent (Popović, 2015) from summed counts: F of the mean precision and recall of all orders."""
    counts = sums.reshape(*sums.shape[:-1], CHARACTER_ORDERS, 3)
    written, expected, matches = counts[..., 0], counts[..., 1], counts[..., 2]
    defined = (written > 0) & (expected > 0)
    orders = np.maximum(defined.sum(-1), 1)
    precision = _divide(np.where(defined, matches, 0), written).sum(-1) / orders
    recall = _divide(np.where(defined, matches, 0), expected).sum(-1) / orders
    return np.asarray(100 * _divide((1 + BETA**2) * precision * recall, BETA**2 * precision + recall))


def _divide(numerator: Any, denominator: Any) -> Float[np.ndarray, "*shape"]:
    """Return numerator / denominator, and 0 where the denominator is 0."""
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), 0.0)
