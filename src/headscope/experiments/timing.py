"""Rivals against the clock, in turns: all of them meet the same slow minutes of a machine."""

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

Clock = Callable[[], float]


@dataclass(frozen=True)
class Rival:
    """One way to do something.

    What surrounds it is set up once for many batches, and its first batches may be slower: neither is on the clock. A
    slow one may have fewer turns.
    """

    run: Callable[[], Any]
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    settling: int = 0  # batches
    most: int | None = None  # turns


def race(
    rivals: Mapping[str, Rival | Callable[[], Any]],
    *,
    turns: int,
    seconds: float = 0.0,
    clock: Clock = time.process_time,
) -> dict[str, list[float]]:
    """Seconds of every rival in every turn, of CPU by default, after one turn to warm up.

    A bare function is a rival with nothing around it. There are at least `turns`, and more until `seconds` are spent:
    short runs are noisier.
    """
    ready = {name: each if isinstance(each, Rival) else Rival(each) for name, each in rivals.items()}
    spent: dict[str, list[float]] = {name: [] for name in ready}
    _turn(ready, 0, clock)
    turn, start = 0, clock()
    while turn < turns or clock() - start < seconds:
        for name, each in _turn(ready, turn, clock).items():
            spent[name].append(each)
        turn += 1
    return spent


def _turn(rivals: Mapping[str, Rival], turn: int, clock: Clock) -> dict[str, float]:
    """Each rival once; who comes first changes, for each finds the memory as the one before left it."""
    names = [name for name, rival in rivals.items() if rival.most is None or turn < rival.most]
    start, collecting = turn % max(1, len(names)), gc.isenabled()
    gc.collect()
    gc.disable()  # or it would collect one rival's garbage on another's time
    try:
        return {name: _clocked(rivals[name], clock) for name in names[start:] + names[:start]}
    finally:
        if collecting:
            gc.enable()


def _clocked(rival: Rival, clock: Clock) -> float:
    """Seconds of one batch; what it made is freed outside the clock."""
    with rival.within():
        for _ in range(rival.settling):
            rival.run()
        start = clock()
        kept = rival.run()
        seconds = clock() - start
    del kept
    return seconds
