"""Attention to the tokens that have a role instead of a meaning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.cells import arrived, masses, mean_where
from headscope.core.spec import check_choices
from headscope.core.statistic import PerExample
from headscope.core.tokens import ROLES, Tokens

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

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """The mean over those rows of an example that see a token of the role."""
        maps = batch.focus
        found = masses(maps, of_role(maps.keys), self.several)
        (own,) = arrived(maps, [of_role(maps.queries).mT])  # batch query role
        asking = torch.stack([~own, own], dim=-1)  # batch query role source
        rows = (found.there[..., None] & asking[:, None])[:, :, None]
        return {
            "special_tokens": mean_where(found.signed[..., None], rows, dim=3),
            "special_tokens_absolute": mean_where(found.absolute[..., None], rows, dim=3),
        }
