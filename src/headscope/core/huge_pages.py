"""Room for large tensors on a CPU, where fresh memory costs more than the numbers that go there."""

import mmap
from collections.abc import Sequence
from contextlib import suppress
from math import prod

import torch
from torch import Tensor

LARGE = 32 * 2**20
"""Bytes above which freed memory goes back to the system, so that every page must be fetched anew."""


def room(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """An empty tensor; a large one in huge pages, where the system has them.

    >>> room((2, 3), torch.float32).shape
    torch.Size([2, 3])
    """
    size = prod(shape) * dtype.itemsize
    if size <= LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(shape, dtype=dtype)
    there = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # only advice, which some systems refuse
        there.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(there, dtype=dtype).view(*shape)
