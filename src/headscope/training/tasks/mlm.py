"""Words that were masked, guessed from the rest (Devlin et al., 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.training import metrics
from headscope.training.rows import EncodedExample, padded, table, tokenised
from headscope.training.task import Draw, Found, Score, Task

SHARE, MASKED, SWAPPED = 0.15, 0.8, 0.1
"""Of all tokens that have a meaning, so many are guessed; of these, so many are masked, and so many replaced."""

IGNORED = -100  # the label of a token that is not guessed, for every loss of torch


@dataclass(frozen=True)
class Mlm(Task):
    """Masked language modelling, without labels. What is masked is drawn anew in each epoch, and once for scores."""

    name = "mlm"
    head = "AutoModelForMaskedLM"
    main = "perplexity"

    @classmethod
    def of(cls, train: Sequence[Example]) -> "Mlm":  # noqa: ARG003  (any text will do)
        """The task that these training examples set."""
        return cls()

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Any text will do."""

    def configure(self, config: Any) -> None:
        """A config needs to know nothing more."""

    def rows(self, tokenizer: Any, examples: Sequence[Example], longest: int | None) -> list[EncodedExample]:
        """The texts as numbers; `place` is where an example stands, which decides what is masked."""
        if tokenizer.mask_token_id is None:
            raise InputError("The tokenizer has no mask token, so no word can be masked. Choose another model or task.")
        rows = tokenised(tokenizer, examples, longest, stacklevel=4)
        for row, example in zip(rows, examples, strict=True):
            if all(row["special_tokens_mask"]):
                raise InputError(
                    f"The text of example '{example.id}' has no tokens but special ones. Give it at least one word."
                )
        return [{**row, "place": place} for place, row in enumerate(rows)]

    def batch(self, tokenizer: Any, rows: Sequence[EncodedExample], draw: Draw) -> dict[str, Tensor]:
        """One batch with some tokens masked; the same seed, epoch and place mask the same."""
        made = [_masked(tokenizer, row, np.random.default_rng((*draw, row["place"]))) for row in rows]
        labels = table([row["labels"] for row in made], IGNORED, tokenizer.padding_side)
        return {**padded(tokenizer, made), "labels": labels}

    def answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The summed loss of each example's masked tokens, how many these are, and how many were guessed right."""
        labels = batch["labels"]
        asked = labels != IGNORED
        loss = torch.zeros(labels.shape, dtype=torch.float64, device=labels.device)
        guesses = output.logits[asked].double()
        loss[asked] = torch.nn.functional.cross_entropy(guesses, labels[asked], reduction="none")
        right = torch.zeros_like(asked)
        right[asked] = guesses.argmax(-1) == labels[asked]
        return {"loss": loss.sum(-1), "tokens": asked.sum(-1), "right": right.sum(-1)}

    def values(self, found: Found) -> dict[str, float]:
        """Perplexity, and the share of masked tokens that were guessed right."""
        return {name: float(metric(*parts)) for name, (metric, parts) in _metrics(found).items()}

    def scores(self, found: Found) -> dict[str, Score]:
        """With the bootstrap's intervals; texts are drawn, not tokens, which depend on one another."""
        return {
            name: Score(float(metric(*parts)), *metrics.middle(metrics.drawn_again(metric, *parts)), "bootstrap")
            for name, (metric, parts) in _metrics(found).items()
        }


def _metrics(found: Found) -> dict[str, Any]:
    loss, right, tokens = (found[name].astype(float) for name in ("loss", "right", "tokens"))
    return {"perplexity": (metrics.perplexity, (loss, tokens)), "accuracy": (_share, (right, tokens))}


def _share(right: Any, tokens: Any) -> Any:
    return right.sum(-1) / tokens.sum(-1)


def _masked(tokenizer: Any, row: EncodedExample, chance: np.random.Generator) -> EncodedExample:
    """A row with some of its tokens masked, replaced or kept, and these as its labels; at least one."""
    ids, special = np.array(row["input_ids"]), np.array(row["special_tokens_mask"], bool)
    asked = (chance.random(len(ids)) < SHARE) & ~special
    if not asked.any():
        asked[chance.choice(np.flatnonzero(~special))] = True
    fate = chance.random(len(ids))
    swapped = chance.integers(0, len(tokenizer), len(ids))
    seen = np.where(fate < MASKED, tokenizer.mask_token_id, np.where(fate < MASKED + SWAPPED, swapped, ids))
    return {
        **row,
        "input_ids": np.where(asked, seen, ids).tolist(),
        "labels": np.where(asked, ids, IGNORED).tolist(),
    }
