"""Attention to special tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.tokens import ROLES, Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import masked_mean, padded_indices, reduce_columns

SPECIAL_ROLES = ROLES[1:]
SOURCES = ("others", "itself")


def role_masks(tokens: Tokens) -> Bool[Tensor, "batch role token"]:
    """Return which tokens have each role."""
    return torch.stack([(tokens.roles == ROLES.index(role)) & tokens.real for role in SPECIAL_ROLES], dim=1)


@dataclass(frozen=True)
class SpecialTokens(PerExample):
    """Mean weight on [CLS], [SEP], [MASK] and other special tokens, from tokens of another role and of the same role.

    If an example has several tokens of a role, their weights are summed; `several="max"` takes the largest (Sun &
    Marasović, 2021). Rows that see none are left out. `special_tokens_absolute` is of |w|.
    """

    several: Literal["sum", "max"] = "sum"

    scope = "layer"
    cites = ("clark2019", "sun2021")
    quantities: ClassVar = {
        "special_tokens": "attention weight",
        "special_tokens_absolute": "absolute attention weight",
    }

    def __post_init__(self) -> None:
        check_choices(self)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[Any]]:  # noqa: ARG002
        """Return the roles, and the sources of the weight."""
        return {"role": SPECIAL_ROLES, "source": SOURCES}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the indices of the keys of each role, and the role of each query."""
        return *padded_indices(role_masks(keys)), role_masks(queries).mT

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of an example that see a token of the role."""
        *columns, own_role = self.token_tables(batch)
        weights = reduce_columns(batch.focus, columns, self.several)
        sources = torch.stack([~own_role, own_role], dim=-1)  # batch query role source
        mask = (weights.visible[..., None] & sources[:, None])[:, :, None]
        return {
            "special_tokens": masked_mean(weights.signed[..., None], mask, dim=3),
            "special_tokens_absolute": masked_mean(weights.absolute[..., None], mask, dim=3),
        }
