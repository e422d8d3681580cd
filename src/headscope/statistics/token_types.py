"""Attention to types of tokens: nouns, pronouns, verbs, punctuation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.spec import check_choices, rename_fields
from headscope.core.tokens import ROLES, Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import REDUCTIONS, AnyReduction, masked_mean, padded_indices, reduce_columns, rows_with_keys
from headscope.maps.token_types import DEFAULT_TYPES, check_types, type_masks


@rename_fields(several="reduce")
@dataclass(frozen=True)
class TokenTypes(PerExample):
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
    scope = "layer"
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

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of an example that see a token of the type."""
        index, valid, *rows = self.token_tables(batch)
        weights = reduce_columns(batch.focus, (index, valid), self.reduce, rows)
        seen = rows_with_keys(batch.focus)[..., None] if self.source == "clark" else weights.visible
        mask = seen[:, :, None, ..., None]
        tables = [weights.signed, weights.absolute]
        if self.counts:
            tables.append(weights.counts.to(weights.signed)[:, :, None, ..., None].expand_as(weights.signed))
        means = [masked_mean(table, mask, dim=3) for table in tables]
        names = ("token_types", "token_types_absolute", "token_types_count")
        return {name: mean if self.reduce == "all" else mean[..., 0] for name, mean in zip(names, means, strict=False)}
