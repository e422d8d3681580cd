"""The keys that all queries of each text see, and what follows from them for projections on their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.projection import rank_tolerance, to_front


@dataclass(frozen=True, eq=False)
class Reach:
    """Which keys are seen, text by text; all that is made of it is made once for all layers."""

    keys: Bool[Tensor, "batch key"]
    counts: Sequence[int]  # how many each text has, as the host knows
    value: int  # value dimensions of a head

    @cached_property
    def short(self) -> list[bool]:
        """Whether a text has no more keys than a head has value dimensions."""
        return [count <= self.value for count in self.counts]

    @cached_property
    def count(self) -> Int[Tensor, "batch 1"]:
        """The number of keys."""
        return self.keys.sum(-1)[:, None]

    @cached_property
    def tolerance(self) -> Float[Tensor, "batch 1"]:
        """The share of the largest singular value that another must exceed to count."""
        return rank_tolerance(self.count, self.value)

    @cached_property
    def rank(self) -> Int[Tensor, "batch 1"]:
        """The rank of the values where it is full."""
        return self.count.clamp(max=self.value)

    @cached_property
    def is_short(self) -> Bool[Tensor, "batch 1 1 1"]:
        """`short` beside the values, shaped to choose among heads."""
        return (self.count <= self.value)[:, :, None, None]

    @cached_property
    def front(self) -> tuple[Int[Tensor, "batch place"], Bool[Tensor, "batch place"]]:
        """The keys moved to the front, as many as there are value dimensions, and which places they fill."""
        return to_front(self.keys, self.value)

    @cached_property
    def spare(self) -> Float[Tensor, "batch 1 place place"]:
        """1 on the diagonal at places that no key fills."""
        return torch.diag_embed((~self.front[1]).double())[:, None]

    @cached_property
    def identity(self) -> Float[Tensor, "batch 1 key place"]:
        """The rows of the identity that lead back from places to keys."""
        index, held = self.front
        places = torch.arange(self.keys.shape[-1], device=index.device)
        return ((index[:, None, :] == places[:, None]) & held[:, None, :]).double()[:, None]
