"""Copy small tensors between host and GPU in one transfer, without making the host wait."""

from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Num
from torch import Tensor


def copy_to_device(device: torch.device, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Copy small tensors to a device; the host does not wait for a GPU."""
    sources = tuple(tensors)
    if device.type != "cuda" or not sources or any(tensor.is_cuda for tensor in sources):
        return tuple(tensor.to(device) for tensor in sources)
    return unpack_bytes(pack_bytes(sources).pin_memory().to(device, non_blocking=True), sources)


def copy_to_host_async(tensors: Iterable[Tensor]) -> Callable[[], tuple[Tensor, ...]]:
    """Start copying small tensors to the host; the returned function waits for the copies.

    It waits for what the GPU was given before this call, not for what follows.
    """
    sources = tuple(tensors)
    if not sources or not sources[0].is_cuda:
        return lambda: sources
    on_gpu = pack_bytes(sources)
    on_host = torch.empty(on_gpu.shape, dtype=on_gpu.dtype, pin_memory=True)
    on_host.copy_(on_gpu, non_blocking=True)
    copied = torch.cuda.current_stream(on_gpu.device).record_event()
    like = [tensor.to("meta") for tensor in sources]

    def wait() -> tuple[Tensor, ...]:
        copied.synchronize()
        return unpack_bytes(on_host, like)

    return wait


def pack_bytes(tensors: Sequence[Tensor]) -> Num[Tensor, " byte"]:
    """Concatenate the bytes of all tensors, larger dtypes first, so that each is aligned."""
    return torch.cat([tensor.contiguous().view(-1).view(torch.uint8) for tensor in _sort_by_dtype(tensors)])


def unpack_bytes(packed: Num[Tensor, " byte"], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Undo `pack_bytes` for tensors of the shapes and dtypes of `like`."""
    ordered = _sort_by_dtype(like)
    sizes = [tensor.numel() * tensor.element_size() for tensor in ordered]
    pieces = {id(tensor): piece for tensor, piece in zip(ordered, torch.split(packed, sizes), strict=True)}
    return tuple(pieces[id(tensor)].view(tensor.dtype).view(tensor.shape) for tensor in like)


def _sort_by_dtype(tensors: Sequence[Tensor]) -> list[Tensor]:
    return sorted(tensors, key=lambda tensor: -tensor.element_size())
