"""Attention to types of tokens: nouns, pronouns, verbs, punctuation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from headscope.core.batch import Batch
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
from headscope.maps.token_types import DEFAULT_TYPES, check_types, type_masks


@rename_fields(several="reduce")
@dataclass(frozen=True)
class TokenTypes(RowWise):
    """Weight from [CLS] on each type of token; NaN for an example without a token of the type.

    If an example has several tokens of a type: the largest weight (Sun & Marasović, 2021), their sum or their mean;
    `reduce="all"` gives each of these along an axis. `source="all"` averages over all rows that see one, "clark" over
    all rows, with 0 where a row sees none (the code of Clark et al., 2019). Of a word of several tokens, the first
    counts, or all. Proper nouns and auxiliaries can count as nouns and verbs. `token_types_absolute` is of |w|; with
    `counts`, `token_types_count` is the number of tokens of the type that a row sees.
    """

    source: Literal["cls", "all", "clark"] = "cls"
    reduce: AnyReduction = "max"
    types: tuple[str, ...] = DEFAULT_TYPES
    proper_nouns: bool = False
    auxiliaries: bool = False
    subtokens: Literal["first", "all"] = "first"
    counts: bool = False

    needs = frozenset({"maps", "tags"})
    cites = ("sun2021", "clark2019")
    quantities: ClassVar = {
        "token_types": "attention weight",
        "token_types_absolute": "absolute attention weight",
        "token_types_count": "number of tokens",
    }

    def __post_init__(self) -> None:
        check_choices(self)
        check_types(self.types)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the types, and with `reduce="all"` the reductions."""
        return {"type": self.types} | ({"several": REDUCTIONS} if self.reduce == "all" else {})

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:
        """Return the indices of the keys of each type, and of the selected queries."""
        masks = type_masks(
            keys,
            examples,
            self.types,
            proper_nouns=self.proper_nouns,
            auxiliaries=self.auxiliaries,
            subtokens=self.subtokens,
        )
        rows = padded_indices(queries.roles == ROLES.index("cls")) if self.source == "cls" else ()
        return *padded_indices(masks), *rows

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:
        """Return the first keys of each type, and the selected queries among some."""
        index, valid, *selected = tables
        queries = cut_indices(selected[0], selected[1], rows.start, rows.stop) if selected else ()
        return *cut_indices(index, valid, 0, keys), *queries

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sum over the rows of an example that see a token of the type."""
        index, valid, *rows = self.token_tables(batch)
        weights = reduce_columns(batch.focus, (index, valid), self.reduce, rows)
        seen = rows_with_keys(batch.focus)[..., None] if self.source == "clark" else weights.visible
        mask = seen[:, :, None, ..., None]
        tables = [weights.signed, weights.absolute]
        if self.counts:
            tables.append(weights.counts.to(weights.signed)[:, :, None, ..., None].expand_as(weights.signed))
        names = ("token_types", "token_types_absolute", "token_types_count")
        return {name: masked_sums(table, mask, dim=3) for name, table in zip(names, tables, strict=False)}

    def finish_sums(self, sums: Mapping[str, Sums], batch: Batch) -> Mapping[str, Tensor]:
        """Return the means; the axis of reductions is left out where there is one."""
        means = super().finish_sums(sums, batch)
        return means if self.reduce == "all" else {name: mean[..., 0] for name, mean in means.items()}
