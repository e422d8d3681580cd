"""Attention to marked words, such as those of a cue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import ROLES, Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import masked_sums, padded_indices, reduce_columns

SOURCES = ("cls", "all")


@dataclass(frozen=True)
class MarkedWords(PerExample):
    """Weight on the marked words of an example: from [CLS], and the mean over all rows.

    The column `marked` of an example lists its marked words by their numbers, those of a second text after those of
    the first; weights on all of their tokens are summed. `marked_words_gain` is the weight above what as many tokens
    of other words get on average. An example without marked words is NaN, and so is the weight from [CLS] where there
    is no such token. `marked_words_absolute` is of |w|.
    """

    scope = "layer"
    cites = ("niven2019",)
    quantities: ClassVar = {
        "marked_words": "attention weight",
        "marked_words_absolute": "absolute attention weight",
        "marked_words_gain": "attention weight above that on other words",
    }

    def axes(self, batch: Batch) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the rows that the weight comes from."""
        return {"source": SOURCES}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:
        """Return the indices of marked tokens and of those of other words, and which queries are [CLS]."""
        marked = mark_tokens(examples, keys)
        others = (keys.word.cpu() >= 0) & ~marked
        columns = padded_indices(torch.stack([marked, others], dim=1))
        return *columns, (queries.roles.cpu() == ROLES.index("cls")) & queries.real.cpu()

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of an example that see a marked word."""
        index, valid, is_cls = self.token_tables(batch)
        weights = reduce_columns(batch.focus, (index, valid), "sum")
        seen = weights.visible[..., 0]  # batch layer query
        masks = torch.stack([seen & is_cls[:, None], seen], dim=-1)[:, :, None]  # batch layer 1 query source
        signed, absolute = (
            masked_sums(table[..., 0, :], masks, dim=3).mean for table in (weights.signed, weights.absolute)
        )
        others = masked_sums(weights.signed[..., 1, :], masks, dim=3).mean
        counts = valid.sum(-1).double()[:, :, None, None, None]  # batch group 1 1 1
        return {
            "marked_words": signed,
            "marked_words_absolute": absolute,
            "marked_words_gain": signed - others * counts[:, 0] / counts[:, 1],
        }


def mark_tokens(examples: Sequence[Example], tokens: Tokens) -> Bool[Tensor, "batch token"]:
    """Return which tokens belong to a marked word of their example."""
    words, rows = tokens.word.cpu(), []
    for example, row in zip(examples, words, strict=True):
        if "marked" not in example.columns:
            raise InputError(
                f"Example '{example.id}' has no column 'marked', which lists the numbers of its marked words. Add it, "
                "such as [0, 3] for the first and the fourth word."
            )
        word_numbers = [int(number) for number in example.columns["marked"]]
        rows.append(torch.isin(row, torch.tensor(word_numbers, dtype=row.dtype)) & (row >= 0))
    return torch.stack(rows)
