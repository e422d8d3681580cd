"""What a pass takes for granted of its layers, so that the host need not ask a GPU about each: to ask is to wait.

All of it is asked when the pass is over, in one question; a pass that took too much for granted is run again.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor


class Assumptions:
    """How much effort each layer needs, as it said when it was asked.

    A layer is asked in the first pass, and in every pass that cannot be run again. In others it is assumed that what
    was enough so far is enough again.
    """

    def __init__(self) -> None:
        self.allowed = False  # whether the pass could be run again
        self._needed: dict[Hashable, Any] = {}
        self._open: list[tuple[Callable[[Sequence[float]], bool], Tensor]] = []

    def needed(self, where: Hashable, least: Any) -> Any:
        """The most effort that a layer ever needed."""
        return self._needed.get(where, least)

    def asks(self, where: Hashable) -> bool:
        """Whether the layer must be asked."""
        return not self.allowed or where not in self._needed

    def learn(self, where: Hashable, effort: Any) -> None:
        """Remember what a layer needs."""
        self._needed[where] = effort

    def take(self, told: Tensor, enough: Callable[[Sequence[float]], bool]) -> None:
        """Take for granted that the numbers told on the GPU will be found to say so."""
        self._open.append((enough, told.clone()))  # a replay overwrites them

    def forget(self) -> None:
        """Drop what was taken for granted in a pass that is broken off."""
        self._open.clear()

    def broken(self) -> bool:
        """Whether anything that was taken for granted is not so; it is no longer taken for granted then."""
        if not self._open:
            return False
        enough, told = zip(*self._open, strict=True)
        self.forget()
        numbers = torch.stack([each.to(told[0].device) for each in told]).tolist()  # the one question
        return not all(says(each) for says, each in zip(enough, numbers, strict=True))
