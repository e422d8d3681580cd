"""Who sees whom in a layer, and what follows from it."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.trace import Visible
from headscope.effective.reach import Reach


@dataclass(frozen=True, eq=False)
class Sight:
    """A mask, with answers that the host has to wait for; layers that share a mask share them too."""

    visible: Visible

    @cached_property
    def shared(self) -> Bool[Tensor, "batch key"] | None:
        """The keys that every real query sees, or None where queries differ in what they see.

        A mask that comes from padding alone lets every query see the same keys; a causal or sliding one does not.
        """
        queries, keys = self.visible.any(2), self.visible.any(1)
        same = torch.equal(self.visible, queries[:, :, None] & keys[:, None, :])
        return keys if same else None

    def reach(self, value: int, *, padded: bool) -> Reach:
        """The shared keys beside a head of so many value dimensions; if `padded`, all keys are said to be seen."""
        if self.shared is None:
            raise ValueError("queries differ in what they see")
        if (value, padded) not in self._reaches:
            keys = torch.ones_like(self.shared) if padded else self.shared
            counts = [keys.shape[-1]] * len(keys) if padded else keys.sum(-1).tolist()
            self._reaches[value, padded] = Reach(keys, counts, value)
        return self._reaches[value, padded]

    @cached_property
    def _reaches(self) -> dict[tuple[int, bool], Reach]:
        return {}

    @cached_property
    def real(self) -> Bool[Tensor, "batch query"]:
        """The queries that see something: those of padding do not."""
        return self.visible.any(-1)
