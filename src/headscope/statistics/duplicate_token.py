"""Attention to earlier occurrences of the same token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.maps.chosen_keys import keys_before, mean_weights, number_tokens, same_number
from headscope.maps.per_example import PerExample
from headscope.maps.rows import token_positions


@dataclass(frozen=True)
class DuplicateToken(PerExample):
    """Mean weight on earlier occurrences of the query's token (Wang et al., 2023).

    Only tokens before the query count, in encoders too, and no special tokens. Rows without an earlier occurrence are
    left out. `duplicate_token_uniform` is the null: what the same rows would have there if they spread their weight
    evenly. Only in self attention.
    """

    scope = "layer"
    cites = ("wang2023",)
    quantities: ClassVar = {
        "duplicate_token": "weight on the same token before",
        "duplicate_token_uniform": "weight on the same token before, if spread evenly",
    }

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the number and position of each query and of each key."""
        return number_tokens(queries)[0], token_positions(queries), number_tokens(keys)[0], token_positions(keys)

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of an example that see such a token, and its null."""
        query_number, query_position, key_number, key_position = self.token_tables(batch)
        chosen = same_number(query_number, key_number) & keys_before(query_position, key_position)
        return mean_weights(batch.focus, chosen, "duplicate_token")
