"""Attention to neighboring tokens: the previous token, the token itself, the next token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.spec import check_choices
from headscope.core.tokens import Tokens
from headscope.maps.row_wise import RowWise, cut_indices
from headscope.maps.rows import Sums, iterate_layers, masked_sums, rows_with_keys


def neighbor_indices(
    queries: Tokens, keys: Tokens, offsets: Sequence[int]
) -> tuple[Int[Tensor, "batch query offset"], Bool[Tensor, "batch query offset"]]:
    """Return the index of the key at each offset from each query, without padding, and whether it exists.

    Uses numpy, which starts no threads: for tables of this size, threads take longer than the GPU's share of the work.
    """
    real_queries, real_keys = queries.real.cpu().numpy(), keys.real.cpu().numpy()
    position = queries.positions.cpu().numpy()[..., None] + np.array(offsets)
    valid = real_queries[..., None] & (position >= 0) & (position < real_keys.sum(-1)[:, None, None])
    order = np.argsort(~real_keys, axis=-1, kind="stable")  # real keys first
    clipped = position.clip(0, order.shape[-1] - 1).reshape(len(order), -1)
    index = np.take_along_axis(order, clipped, axis=-1).reshape(position.shape)
    return torch.from_numpy(index), torch.from_numpy(valid)


@dataclass(frozen=True)
class Offsets(RowWise):
    """Mean weight on the token at each offset: −1 is the previous token, 0 the token itself, +1 the next token.

    Rows that see no real token at an offset are left out; `rows="clark"` counts them as 0, which divides by the number
    of all tokens, as the code of Clark et al. (2019) does. `offsets_absolute` is the mean of |w|.
    """

    reach: int = 2
    rows: Literal["neighbours", "clark"] = "neighbours"

    cites = ("clark2019",)
    quantities: ClassVar = {"offsets": "attention weight", "offsets_absolute": "absolute attention weight"}

    def __post_init__(self) -> None:
        check_choices(self)
        if self.reach < 0:
            raise InputError(f"The parameter 'reach' of 'offsets' must be at least 0, but got {self.reach}.")

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:  # noqa: ARG002
        """Return the offsets."""
        return {"offset": range(-self.reach, self.reach + 1)}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return the neighbors of each query."""
        return neighbor_indices(queries, keys, range(-self.reach, self.reach + 1))

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:
        """Return the neighbors of some queries among the first keys."""
        index, valid = tables
        return cut_indices(index[:, rows], valid[:, rows], 0, keys)

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return the sum over the rows of an example that have such a neighbor."""
        index, valid = self.token_tables(batch)
        masks, picked = [], []
        for weights, visible in iterate_layers(batch.focus):
            masks.append(visible.gather(-1, index) & valid)
            picked.append(weights.gather(-1, index[:, None].expand(-1, weights.shape[1], -1, -1)))
        mask, values = torch.stack(masks, dim=1)[:, :, None], torch.stack(picked, dim=1)
        if self.rows == "clark":
            values, mask = values * mask, rows_with_keys(batch.focus)[:, :, None, :, None]
        return {
            "offsets": masked_sums(values, mask, dim=3),
            "offsets_absolute": masked_sums(values.abs(), mask, dim=3),
        }
