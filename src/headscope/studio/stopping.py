"""End what models compute as soon as nobody waits for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch.nn.modules.module import register_module_forward_pre_hook


class Abandoned(BaseException):
    """Nobody waits for the result; no `except Exception` on the way takes it for a failure."""


@contextmanager
def stop_when(left: threading.Event) -> Iterator[None]:
    """Raise Abandoned in this block once the event is set, before the next module of a network runs.

    Between modules everything is in order, so what cleans up after an error also cleans up after this.

    >>> from torch import nn, ones
    >>> left = threading.Event()
    >>> with stop_when(left):
    ...     left.set()
    ...     nn.ReLU()(ones(2))
    Traceback (most recent call last):
    headscope.studio.stopping.Abandoned
    """
    thread = threading.get_ident()

    def check(*_: object) -> None:
        if left.is_set() and threading.get_ident() == thread:
            raise Abandoned

    check()
    hook = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        hook.remove()
