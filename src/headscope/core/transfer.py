"""Small tensors on their way between the host and where the maps lie, in one parcel, so that nobody waits."""

from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Num
from torch import Tensor


def copy_to_device(device: torch.device, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Small tensors of the host, sent where the maps lie; the host does not wait for a GPU to take them."""
    given = tuple(tensors)
    if device.type != "cuda" or not given:
        return tuple(each.to(device) for each in given)
    return unpack_bytes(pack_bytes(given).pin_memory().to(device, non_blocking=True), given)


def copy_to_host_async(tensors: Iterable[Tensor]) -> Callable[[], tuple[Tensor, ...]]:
    """A promise of small tensors with the host: a GPU sends them when they are computed, not after what follows."""
    given = tuple(tensors)
    if not given or not given[0].is_cuda:
        return lambda: given
    there = pack_bytes(given)
    here = torch.empty(there.shape, dtype=there.dtype, pin_memory=True)
    here.copy_(there, non_blocking=True)
    sent = torch.cuda.current_stream(there.device).record_event()
    like = [each.to("meta") for each in given]

    def wait() -> tuple[Tensor, ...]:
        sent.synchronize()
        return unpack_bytes(here, like)

    return wait


def pack_bytes(tensors: Sequence[Tensor]) -> Num[Tensor, " byte"]:
    """All tensors as one row of bytes, those of large numbers first, so that each begins where it may."""
    return torch.cat([each.contiguous().view(-1).view(torch.uint8) for each in _by_size(tensors)])


def unpack_bytes(packed: Num[Tensor, " byte"], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors of a parcel, which are like these."""
    sizes = [each.numel() * each.element_size() for each in _by_size(like)]
    parts = {id(each): part for each, part in zip(_by_size(like), torch.split(packed, sizes), strict=True)}
    return tuple(parts[id(each)].view(each.dtype).view(each.shape) for each in like)


def _by_size(tensors: Sequence[Tensor]) -> list[Tensor]:
    return sorted(tensors, key=lambda each: -each.element_size())
