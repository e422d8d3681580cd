"""The keys that all queries of each text see, and what follows from them for projections on their values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.effective.projection import rank_tolerance, to_front


class Places(NamedTuple):
    """The keys of a text moved to the front, as many places as there are value dimensions."""

    key: Int[Tensor, "batch place"]  # the one that goes there
    filled: Float[Tensor, "batch 1"]  # places that a key fills, 1 at least
    spare: Float[Tensor, "batch 1 place place"]  # 1 on the diagonal at others
    identity: Float[Tensor, "batch 1 key place"]  # the rows of the identity that lead back from places to keys

    @classmethod
    def of(cls, keys: Bool[Tensor, "batch key"], value: int) -> "Places":
        """Where the keys go."""
        index, held = to_front(keys, value)
        every = torch.arange(keys.shape[-1], device=keys.device)
        identity = ((index[:, None, :] == every[:, None]) & held[:, None, :]).float()[:, None]
        spare = torch.diag_embed((~held).double())[:, None]
        return cls(index, held.sum(-1)[:, None].clamp(min=1).double(), spare, identity)


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
    def whole(self) -> bool:
        """Whether all keys of all texts are seen."""
        return min(self.counts) == self.keys.shape[-1]

    @cached_property
    def count(self) -> Int[Tensor, "batch 1"]:
        """The number of keys."""
        return self.keys.sum(-1)[:, None]

    @cached_property
    def tolerance(self) -> Float[Tensor, "batch 1"]:
        """The share of the largest singular value that another must exceed to count."""
        return rank_tolerance(self.count, self.value)

    @cached_property
    def is_short(self) -> Bool[Tensor, "batch 1 1 1"]:
        """`short` beside the values, shaped to choose among heads."""
        return (self.count <= self.value)[:, :, None, None]

    @cached_property
    def places(self) -> Places:
        """Where the keys of short texts go."""
        return Places.of(self.keys, self.value)

    @cached_property
    def parts(self) -> tuple[Tensor, ...]:
        """All tensors that the work needs; `of_parts` puts them together again."""
        always = self.keys, self.count, self.tolerance
        return (*always, self.is_short, *self.places) if any(self.short) else always

    def of_parts(self, parts: Sequence[Tensor]) -> "Reach":
        """A reach like this one, of the parts of another."""
        keys, count, tolerance, *short = parts
        there = replace(self, keys=keys)
        made: dict[str, object] = {"count": count, "tolerance": tolerance}
        if short:
            made |= {"is_short": short[0], "places": Places(*short[1:])}
        vars(there).update(made)  # where cached properties are kept
        return there
