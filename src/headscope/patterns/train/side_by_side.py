"""The same work for many jobs, each on one thread of one core, as many at a time as there are cores.

One thread each, so that the answer does not depend on how many cores there are.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import torch


def side_by_side(function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], *, here: bool = False) -> Iterator[Any]:
    """What the function gives for each job, in their order; `here` keeps all of them in this process.

    >>> list(side_by_side(divmod, [(7, 2), (9, 4)], here=True))
    [(3, 1), (2, 1)]
    """
    workers = min(len(jobs), os.cpu_count() or 1)
    if here or workers < 2:
        with one_thread():
            yield from (function(*job) for job in jobs)
        return
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        yield from pool.map(function, *zip(*jobs, strict=True))


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread, for as long as this lasts."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
