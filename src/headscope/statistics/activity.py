"""Attention that does not rest: the share of a head's weight that goes to ordinary tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible
from headscope.maps.row_wise import RowWise
from headscope.maps.rows import Sums, Weights, absolute_weights, iterate_layers, sum_rows


def ordinary_keys(keys: Tokens) -> Bool[Tensor, "batch key"]:
    """Return the tokens on which attention does not rest: not special, not padding, not the first."""
    return keys.real & ~keys.special & (keys.positions > 0)


def row_activity(
    weights: Weights, visible: Visible, keys: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query"]:
    """Return the share of |w| on some keys; NaN for a row that sees none of them, or has no weight."""
    sizes = absolute_weights(weights, visible)
    share = (sizes * keys[:, None, None]).sum(-1) / sizes.sum(-1)
    sees = (visible & keys[:, None]).any(-1)
    return share.masked_fill(~sees[:, None], torch.nan)


@dataclass(frozen=True)
class Activity(RowWise):
    """Mean share of |w| on tokens that are neither special nor the first: what a head does when it does not rest.

    Heads without anything to do attend to [CLS], [SEP] or the first token. Rows of special tokens are left out, and so
    are those that see nothing else. `hs.atlas` sorts examples by it.
    """

    cites = ("clark2019",)
    quantities: ClassVar = {"activity": "share of weight on ordinary tokens"}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the keys that count, and the queries that count."""
        return ordinary_keys(keys).cpu(), (queries.real & ~queries.special).cpu()

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:
        """Return which keys and which of some queries count."""
        ordinary, queries = tables
        return ordinary[:, :keys], queries[:, rows]

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sum over the rows of an example."""
        keys, queries = self.token_tables(batch)
        layers = [row_activity(weights, visible, keys) for weights, visible in iterate_layers(batch.focus)]
        rows = torch.stack(layers, dim=1).masked_fill(~queries[:, None, None], torch.nan)
        return {"activity": sum_rows(rows)}
