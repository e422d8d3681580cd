"""Devices that models run on, and the threads of torch."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from headscope.core.errors import LoadError


def check_device(device: Any) -> None:
    """Raise LoadError unless a model can run on this device; None stands for the default.

    Parameters
    ----------
    device
        A name such as "cpu", "cuda" or "cuda:1", or a torch.device.
    """
    if device is None:
        return
    try:
        parsed = torch.device(device)
    except (RuntimeError, TypeError):
        raise LoadError(f"device={str(device)!r} is no device of torch. Give 'cpu', 'cuda' or 'cuda:1'.") from None
    if parsed.type == "cuda" and not torch.cuda.is_available():
        raise LoadError(
            f"device='{device}' is asked for, but this installation of torch finds no GPU. Leave it out, or give 'cpu'."
        )
    if parsed.type == "cuda" and (parsed.index or 0) >= (count := torch.cuda.device_count()):
        available = "'cuda:0'" if count == 1 else f"'cuda:0' to 'cuda:{count - 1}'"
        raise LoadError(f"device='{device}' is asked for, but the GPUs here are {available}. Give one of these.")
    if parsed.type == "meta" or not _can_allocate(parsed):
        raise LoadError(f"device='{device}' is asked for, but no model can run there. Leave it out, or give 'cpu'.")


def _can_allocate(device: torch.device) -> bool:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, NotImplementedError, AssertionError):  # as a build of torch says that it lacks a device
        return False
    return True


@contextmanager
def single_thread() -> Iterator[None]:
    """Run torch on one thread in this block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
