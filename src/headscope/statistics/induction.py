"""Attention to what followed the same token before."""

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
class Induction(PerExample):
    """Mean weight on the tokens that came after earlier occurrences of the query's token (Olsson et al., 2022).

    In A B … A, it is the weight from the second A on B: the pattern of induction heads. Only tokens before the query
    count, in encoders too, and no special tokens. Rows without such a token are left out. `induction_uniform` is the
    null: what the same rows would have there if they spread their weight evenly. Only in self attention.
    """

    scope = "layer"
    cites = ("olsson2022",)
    quantities: ClassVar = {
        "induction": "weight on what followed the same token",
        "induction_uniform": "weight on what followed the same token, if spread evenly",
    }

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the number and position of each query, and of each key those and the number of the token before."""
        return number_tokens(queries)[0], token_positions(queries), *number_tokens(keys), token_positions(keys)

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of an example that see such a token, and its null."""
        query_number, query_position, key_number, number_before, key_position = self.token_tables(batch)
        chosen = same_number(query_number, number_before) & (key_number >= 0)[:, None]
        return mean_weights(batch.focus, chosen & keys_before(query_position, key_position), "induction")
