"""Attention to the neighbours: the previous token, the next, the token itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.cells import arrived, layers, mean_where, positions
from headscope.core.errors import InputError
from headscope.core.statistic import PerExample
from headscope.core.tokens import Tokens


def neighbours(
    queries: Tokens, keys: Tokens, offsets: Sequence[int]
) -> tuple[Int[Tensor, "batch query offset"], Bool[Tensor, "batch query offset"]]:
    """The key that stands at each offset from each query, counted in real tokens, and whether there is one."""
    wanted = positions(queries)[..., None] + torch.tensor(offsets, device=queries.real.device)
    there = queries.real[..., None] & (wanted >= 0) & (wanted < keys.counts[:, None, None])
    order = keys.real.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # real keys first
    places = wanted.clamp(0, order.shape[-1] - 1).flatten(1)
    return order.gather(1, places).view_as(wanted), there


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

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """The mean over those rows of an example that have such a neighbour."""
        maps = batch.focus
        offsets = range(-self.reach, self.reach + 1)
        index, there = arrived(maps, neighbours(maps.queries, maps.keys, offsets))
        seen = torch.stack([visible.gather(-1, index) & there for visible in maps.visible], dim=1)[:, :, None]
        picked = torch.stack(
            [weights.gather(-1, index[:, None].expand(-1, weights.shape[1], -1, -1)) for weights, _ in layers(maps)], 1
        )
        return {
            "offsets": mean_where(picked, seen, dim=3),
            "offsets_absolute": mean_where(picked.abs(), seen, dim=3),
        }
