"""Which heads of an attention module are left, under the numbers that they had before others were removed."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeptHeads:
    """The heads of one attention module that are left, in order.

    >>> kept = KeptHeads((0, 3), total=4)
    >>> kept.missing, kept.expand(torch.ones(1, 2, 5)).sum(-1)
    ([1, 2], tensor([[5., 0., 0., 5.]]))
    """

    heads: tuple[int, ...]
    total: int  # the number of heads before
    size: int = 1  # the dimension of a head
    group: int = 1  # query heads for each key-value head, before
    in_place: bool = False  # whether the module still computes all heads; what the removed ones write is not read

    @property
    def missing(self) -> list[int]:
        """The heads that were removed."""
        return [head for head in range(self.total) if head not in self.heads]

    def count_users(self) -> Counter[int]:
        """Return the number of query heads that are left for each key-value head that is left, in order."""
        return Counter(head // self.group for head in self.heads)

    def expand(self, tensor: Tensor) -> Tensor:
        """Return [batch, kept head, …] with zeros in place of the removed heads."""
        if self.in_place:
            return tensor.index_fill(1, torch.tensor(self.missing, dtype=torch.long, device=tensor.device), 0)
        full = tensor.new_zeros(len(tensor), self.total, *tensor.shape[2:])
        return full.index_copy(1, self._index(tensor.device), tensor)

    def select(self, tensor: Tensor) -> Tensor:
        """Return the heads of [batch, head, …] that the module computes."""
        return tensor if self.in_place else tensor.index_select(1, self._index(tensor.device))

    def _index(self, device: torch.device) -> Tensor:
        return torch.tensor(self.heads, dtype=torch.long, device=device)


def find_kept_heads(module: Any) -> KeptHeads | None:
    """Return which heads of an attention module are left; None for one that has lost none."""
    heads: KeptHeads | None = vars(module).get("kept_heads")  # getattr is slow for what a module does not have
    return heads
