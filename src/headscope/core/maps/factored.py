"""Maps in factored form, and whole maps in huge pages of memory."""

import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Factored:
    """A map held as two thin factors, weights = left · rightᵀ; most uses need only a few of its columns."""

    left: Float[Tensor, "batch head query inner"]  # B
    right: Float[Tensor, "batch head key inner"]  # Q

    @property
    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The whole map."""
        left, right = self.left, self.right
        if left.device.type != "cpu" or left.requires_grad or right.requires_grad:
            return left @ right.mT
        shape = (*left.shape[:-1], right.shape[-2])
        product = allocate_huge_pages(shape, left.dtype)
        torch.bmm(left.flatten(0, -3), right.flatten(0, -3).mT, out=product.view(-1, *shape[-2:]))
        return product


HUGE_PAGE_BYTES = 32 * 2**20
"""Size above which freed memory returns to the system, so that every page of a new tensor is mapped anew."""


def allocate_huge_pages(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return an empty CPU tensor; a large one in huge pages, where the system has them.

    Mapping fresh pages costs more than the product that fills them.

    >>> allocate_huge_pages((2, 3), torch.float32).shape
    torch.Size([2, 3])
    """
    size = prod(shape) * dtype.itemsize
    if size <= HUGE_PAGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(shape, dtype=dtype)
    buffer = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # some systems refuse this advice
        buffer.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(buffer, dtype=dtype).view(*shape)
