"""Attention to the tokens that have a role instead of a meaning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.tokens import ROLES, Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import masked_mean, padded_indices, sum_columns

KINDS = ROLES[1:]
SOURCES = ("others", "itself")


def of_role(tokens: Tokens) -> Bool[Tensor, "batch role token"]:
    """Which tokens have each role."""
    return torch.stack([(tokens.roles == ROLES.index(role)) & tokens.real for role in KINDS], dim=1)


@dataclass(frozen=True)
class SpecialTokens(PerExample):
    """The weight on [CLS], [SEP], [MASK] and other special tokens, from tokens of another role and from their own.

    Where an example has several of a role: their sum, or the largest (`several="max"`, as in Sun & Marasović, 2021).
    Only rows count that see one; signed, and as `special_tokens_absolute` of |w|.
    """

    several: Literal["sum", "max"] = "sum"

    cites = ("clark2019", "sun2021")

    def __post_init__(self) -> None:
        check_choices(self)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[Any]]:  # noqa: ARG002
        """The roles, and from whom."""
        return {"role": KINDS, "source": SOURCES}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Where the keys of each role are, and the role of each query."""
        return *padded_indices(of_role(keys)), of_role(queries).mT

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """The mean over those rows of an example that see a token of the role."""
        *columns, own = self.known(batch)
        found = sum_columns(batch.focus, columns, self.several)
        asking = torch.stack([~own, own], dim=-1)  # batch query role source
        rows = (found.there[..., None] & asking[:, None])[:, :, None]
        return {
            "special_tokens": masked_mean(found.signed[..., None], rows, dim=3),
            "special_tokens_absolute": masked_mean(found.absolute[..., None], rows, dim=3),
        }
