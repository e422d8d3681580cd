"""Attention to the token before, beside what chance would give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.maps.chosen_keys import mean_weights
from headscope.maps.per_example import PerExample
from headscope.maps.rows import token_positions


@dataclass(frozen=True)
class PreviousToken(PerExample):
    """Mean weight on the token before the query: that of `offsets` at −1, with its null.

    Special tokens count. `previous_token_uniform` is what the same rows would have there if they spread their weight
    evenly over the keys that they see. Only in self attention.
    """

    scope = "layer"
    cites = ("clark2019",)
    quantities: ClassVar = {
        "previous_token": "weight on the previous token",
        "previous_token_uniform": "weight on the previous token, if spread evenly",
    }

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the position of each query and of each key."""
        return token_positions(queries), token_positions(keys)

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean over the rows of an example that see the token before, and its null."""
        queries, keys = self.token_tables(batch)
        chosen = queries[:, :, None] - 1 == keys[:, None]
        return mean_weights(batch.focus, chosen, "previous_token")
