"""Attention to the neighbours: the previous token, the next, the token itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers, masked_mean


def neighbours(
    queries: Tokens, keys: Tokens, offsets: Sequence[int]
) -> tuple[Int[Tensor, "batch query offset"], Bool[Tensor, "batch query offset"]]:
    """The key that stands at each offset from each query, counted in real tokens, and whether there is one.

    In numpy, which starts no threads: for tables this small they would cost a GPU more than it takes for its part.
    """
    asking, asked = queries.real.cpu().numpy(), keys.real.cpu().numpy()
    wanted = (asking.cumsum(-1) - 1)[..., None] + np.array(offsets)
    there = asking[..., None] & (wanted >= 0) & (wanted < asked.sum(-1)[:, None, None])
    order = np.argsort(~asked, axis=-1, kind="stable")  # real keys first
    places = wanted.clip(0, order.shape[-1] - 1).reshape(len(order), -1)
    index = np.take_along_axis(order, places, axis=-1).reshape(wanted.shape)
    return torch.from_numpy(index), torch.from_numpy(there)


@dataclass(frozen=True)
class Offsets(PerExample):
    """The mean weight on the token at each offset: −1 is the previous one, 0 the token itself, +1 the next.

    Only rows count that see a real token there; signed, and as `offsets_absolute` the mean of |w|.
    """

    reach: int = 2

    cites = ("clark2019",)

    def __post_init__(self) -> None:
        if self.reach < 0:
            raise InputError(f"The parameter 'reach' of 'offsets' must be at least 0, but got {self.reach}.")

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:  # noqa: ARG002
        """The offsets."""
        return {"offset": range(-self.reach, self.reach + 1)}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """The neighbours of each query."""
        return neighbours(queries, keys, range(-self.reach, self.reach + 1))

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """The mean over those rows of an example that have such a neighbour."""
        maps, (index, there) = batch.focus, self.known(batch)
        seen = torch.stack([visible.gather(-1, index) & there for visible in maps.visible], dim=1)[:, :, None]
        picked = torch.stack(
            [
                weights.gather(-1, index[:, None].expand(-1, weights.shape[1], -1, -1))
                for weights, _ in iterate_layers(maps)
            ],
            1,
        )
        return {
            "offsets": masked_mean(picked, seen, dim=3),
            "offsets_absolute": masked_mean(picked.abs(), seen, dim=3),
        }
