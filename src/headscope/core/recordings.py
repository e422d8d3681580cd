"""Small work that a GPU does again and again: launching it costs more than doing it, so it is recorded and replayed."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import torch
from torch import Tensor

Work = Callable[..., tuple[Tensor, ...]]

PATIENCE = 16
"""Calls with tensors of one shape before they are thought worth recording."""

MOST = 4
"""Shapes whose recordings are kept; each holds on to its memory."""

_one_at_a_time = Lock()
"""Only one recording may be under way in a process."""


class Recordings:
    """What was recorded, for as long as its owner keeps it; elsewhere than on a GPU, work is simply done.

    What a replay gives is overwritten by the next of the same work and shape: use it before.
    """

    def __init__(self) -> None:
        self._calls = Counter[Hashable]()
        self._made: OrderedDict[Hashable, _Recording] = OrderedDict()

    def run(self, name: Hashable, work: Work, *given: Tensor) -> tuple[Tensor, ...]:
        """Do the work called `name`; it must depend on nothing but its name, these tensors and their shapes."""
        key = (name, *((each.device, each.dtype, each.shape) for each in given))
        self._calls[key] += 1
        if not given[0].is_cuda or self._calls[key] <= PATIENCE:
            return work(*given)
        if key not in self._made:
            self._made[key] = _Recording(work, given)
        self._made.move_to_end(key)
        while len(self._made) > MOST:
            old, _ = self._made.popitem(last=False)
            self._calls[old] = 0  # it must prove its worth again
        return self._made[key](*given)


class _Recording:
    """Work on tensors in places of its own."""

    def __init__(self, work: Work, given: tuple[Tensor, ...]) -> None:
        cuda: Any = torch.cuda
        self._device = given[0].device
        with _one_at_a_time, cuda.device(self._device), torch.inference_mode(False), torch.no_grad():
            self._given = [each.clone() for each in given]
            here, aside = cuda.current_stream(), cuda.Stream()
            aside.wait_stream(here)
            with cuda.stream(aside):
                work(*self._given)  # libraries set themselves up before anything is recorded
            here.wait_stream(aside)
            self._graph = cuda.CUDAGraph()
            with cuda.graph(self._graph, stream=aside, capture_error_mode="thread_local"):  # others go on as they like
                self._made = work(*self._given)

    def __call__(self, *given: Tensor) -> tuple[Tensor, ...]:
        with torch.cuda.device(self._device):
            for place, each in zip(self._given, given, strict=True):
                place.copy_(each)
            self._graph.replay()
        return self._made
