"""A limit of time, and silence."""

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import transformers


class TookLongError(BaseException):
    """A model took longer than it may."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookLongError in the block when it has run for so long."""

    def stop(*_: Any) -> None:
        raise TookLongError(f"took longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def silence() -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings, and keep transformers from logging."""
    transformers.logging.set_verbosity(60)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        yield messages
