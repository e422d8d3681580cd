"""Attention to special tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError, unknown_name
from headscope.core.example import Example
from headscope.core.spec import check_choices, rename_fields
from headscope.core.tokens import ROLES, Tokens
from headscope.maps.row_wise import RowWise, cut_indices
from headscope.maps.rows import (
    REDUCTIONS,
    AnyReduction,
    Sums,
    masked_sums,
    padded_indices,
    reduce_columns,
    rows_with_keys,
)

SPECIAL_ROLES = ROLES[1:]
SOURCES = ("others", "itself")


def role_masks(tokens: Tokens, roles: Sequence[str] = SPECIAL_ROLES) -> Bool[Tensor, "batch role token"]:
    """Return which tokens have each role."""
    return torch.stack([(tokens.roles == ROLES.index(role)) & tokens.real for role in roles], dim=1)


@rename_fields(several="reduce")
@dataclass(frozen=True)
class SpecialTokens(RowWise):
    """Mean weight on [CLS], [SEP], [MASK] and other special tokens, from tokens of another role and of the same role.

    If an example has several tokens of a role, their weights are summed; `reduce="max"` takes the largest (Sun &
    Marasović, 2021), "mean" their mean, "all" gives each of these along an axis. Rows that see none are left out.
    `roles` and `source` select what is measured; `source="clark"` averages over all rows, those of the same role
    included and those that see none as 0, as the code of Clark et al. (2019) does. `special_tokens_absolute` is of |w|.
    """

    reduce: AnyReduction = "sum"
    roles: tuple[str, ...] = SPECIAL_ROLES
    source: Literal["both", "others", "itself", "clark"] = "both"

    cites = ("clark2019", "sun2021")
    quantities: ClassVar = {
        "special_tokens": "attention weight",
        "special_tokens_absolute": "absolute attention weight",
    }

    def __post_init__(self) -> None:
        check_choices(self)
        for role in self.roles:
            if role not in SPECIAL_ROLES:
                raise unknown_name("role of special tokens", role, SPECIAL_ROLES)
        if not self.roles:
            raise InputError("There are no roles: the list is empty. Name at least one, such as 'sep'.")

    def axes(self, batch: Batch) -> Mapping[str, Sequence[Any]]:  # noqa: ARG002
        """Return the roles, the sources of the weight, and with `reduce="all"` the reductions."""
        axes = {"role": self.roles, "source": SOURCES if self.source == "both" else (self.source,)}
        return axes | ({"several": REDUCTIONS} if self.reduce == "all" else {})

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the indices of the keys of each role, and the role of each query."""
        return *padded_indices(role_masks(keys, self.roles)), role_masks(queries, self.roles).mT

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:
        """Return the first keys of each role, and the roles of some queries."""
        index, valid, own_role = tables
        return *cut_indices(index, valid, 0, keys), own_role[:, rows]

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sum over the rows of an example that see a token of the role."""
        *columns, own_role = self.token_tables(batch)
        weights = reduce_columns(batch.focus, columns, self.reduce)
        if self.source == "clark":
            mask = rows_with_keys(batch.focus)[:, :, None, :, None, None, None]
        else:
            masks = {"others": ~own_role, "itself": own_role}
            sources = torch.stack([masks[source] for source in self.axes(batch)["source"]], dim=-1)
            mask = (weights.visible[..., None] & sources[:, None])[:, :, None, ..., None]
        tables = {"special_tokens": weights.signed, "special_tokens_absolute": weights.absolute}
        return {name: masked_sums(table[..., None, :], mask, dim=3) for name, table in tables.items()}

    def finish_sums(self, sums: Mapping[str, Sums], batch: Batch) -> Mapping[str, Tensor]:
        """Return the means; the axis of reductions is left out where there is one."""
        means = super().finish_sums(sums, batch)
        return means if self.reduce == "all" else {name: mean[..., 0] for name, mean in means.items()}
