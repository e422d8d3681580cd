"""Small work that a GPU does again and again: launching it costs more than doing it, so it is recorded and replayed."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")  # anything that holds tensors

PATIENCE = 8
"""Calls with tensors of one shape before they are thought worth recording."""

MOST = 6
"""Shapes whose recordings are kept; each holds on to its memory."""

WORTH = 64
"""Replays that pay for a recording."""

WASTED = 4
"""Recordings that may fail, or be dropped before they paid; then no more are made."""

_one_at_a_time = Lock()
"""Only one recording may be under way in a process."""


class Recordings:
    """What was recorded, for as long as its owner keeps it; elsewhere than on a GPU, work is simply done.

    What a replay gives is overwritten by the next of the same work and shape: use it before. Where shapes change too
    often for recordings to pay, or recording fails, work is simply done as well.
    """

    def __init__(self) -> None:
        self._calls = Counter[Hashable]()
        self._replays = Counter[Hashable]()
        self._made: OrderedDict[Hashable, _Recording[Any]] = OrderedDict()
        self._refused: set[Hashable] = set()  # what cannot be recorded
        self._wasted = 0

    def run(self, name: Hashable, work: Callable[..., Made], *given: Tensor, fixed: tuple[Tensor, ...] = ()) -> Made:
        """Do the work called `name`; it must depend on nothing but its name, these tensors and their shapes.

        Tensors that are `fixed` never change, and are often the same as last time: then they are not copied again.
        """
        if not given[0].is_cuda:
            return work(*given, *fixed)
        key = (name, *((each.device, each.dtype, each.shape) for each in (*given, *fixed)))
        if key not in self._made and not self._record(key, work, given, fixed):
            return work(*given, *fixed)
        self._made.move_to_end(key)
        self._replays[key] += 1
        made: Made = self._made[key](given, fixed)
        return made

    def _record(
        self, key: Hashable, work: Callable[..., Any], given: tuple[Tensor, ...], fixed: tuple[Tensor, ...]
    ) -> bool:
        """Record the work if it is time and can be done, and say whether; what was not used for longest makes room."""
        if self._wasted >= WASTED or key in self._refused:
            return False
        self._calls[key] += 1
        if self._calls[key] <= PATIENCE:
            return False
        try:
            self._made[key] = _Recording(work, given, fixed)
        except Exception:  # what cannot be recorded can still be done, and if not, says itself what is wrong
            self._refused.add(key)
            self._wasted += 1
            return False
        if len(self._made) > MOST:
            old, _ = self._made.popitem(last=False)
            self._wasted += self._replays.pop(old, 0) < WORTH
            del self._calls[old]  # it must prove its worth again
        return True


class _Recording(Generic[Made]):
    """Work on tensors in places of its own."""

    def __init__(self, work: Callable[..., Made], given: tuple[Tensor, ...], fixed: tuple[Tensor, ...]) -> None:
        cuda: Any = torch.cuda
        self._device = given[0].device
        with (
            _one_at_a_time,
            cuda.device(self._device),
            cuda.stream(cuda.current_stream(self._device)),  # a recording that fails leaves its own stream in place
            torch.inference_mode(False),
            torch.no_grad(),
        ):
            self._given, self._fixed = ([_place(each) for each in some] for some in (given, fixed))
            self._last = fixed
            here, aside = cuda.current_stream(), cuda.Stream()
            aside.wait_stream(here)
            with cuda.stream(aside):
                work(*self._given, *self._fixed)  # libraries set themselves up before anything is recorded
            here.wait_stream(aside)
            self._graph = cuda.CUDAGraph()
            with cuda.graph(self._graph, stream=aside, capture_error_mode="thread_local"):  # others go on as they like
                self._made = work(*self._given, *self._fixed)

    def __call__(self, given: tuple[Tensor, ...], fixed: tuple[Tensor, ...]) -> Made:
        with torch.cuda.device(self._device):
            for place, each in zip(self._given, given, strict=True):
                place.copy_(each)
            for place, each, last in zip(self._fixed, fixed, self._last, strict=True):
                if each is not last:
                    place.copy_(each)
            self._last = fixed
            self._graph.replay()
        return self._made


def _place(given: Tensor) -> Tensor:
    """A tensor's own place in memory, in one piece: what is done there need not put it together again and again."""
    return given.clone(memory_format=torch.contiguous_format)
