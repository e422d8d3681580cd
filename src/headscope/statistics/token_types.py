"""Attention to kinds of words: nouns, pronouns, verbs, punctuation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.tokens import ROLES, Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Reduction, masked_mean, padded_indices, sum_columns
from headscope.maps.token_types import DEFAULT_TYPES, check_types, type_masks


@dataclass(frozen=True)
class TokenTypes(PerExample):
    """The weight from [CLS] to each type of token; a type that an example lacks is NaN there, not 0.

    Several tokens of a type: the largest weight (Sun & Marasović, 2021), their sum or their mean. `source="all"` takes
    the mean over all rows. A word of several tokens counts by its first, or by all. Proper nouns and auxiliaries are
    nouns and verbs by option. Signed, and as `token_types_absolute` of |w|.
    """

    source: Literal["cls", "all"] = "cls"
    several: Reduction = "max"
    types: tuple[str, ...] = DEFAULT_TYPES
    proper_nouns: bool = False
    auxiliaries: bool = False
    subtokens: Literal["first", "all"] = "first"

    needs = frozenset({"maps", "tags"})
    cites = ("sun2021", "clark2019")

    def __post_init__(self) -> None:
        check_choices(self)
        check_types(self.types)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """The types."""
        return {"type": self.types}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:
        """Where the keys of each type are, and the queries that count."""
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
        """The mean over those rows of an example that see a token of the type."""
        index, held, *rows = self.known(batch)
        found = sum_columns(batch.focus, (index, held), self.several, rows)
        there = found.there[:, :, None]
        return {
            "token_types": masked_mean(found.signed, there, dim=3),
            "token_types_absolute": masked_mean(found.absolute, there, dim=3),
        }
