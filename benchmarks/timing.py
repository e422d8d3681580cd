"""CPU time of rivals, taken in turns."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Clock = Callable[[], float]
Rivals = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Ratio:
    """How many times as much CPU time one rival takes as another."""

    least: float  # least time over least time
    median: float  # of the ratios turn by turn, so that a slow minute of the machine meets both

    def __format__(self, spec: str) -> str:
        return f"{self.least:{spec}} / {self.median:{spec}}"


def race(
    rivals: Rivals, *, repeats: int, seconds: float = 0, clock: Clock = time.process_time
) -> dict[str, list[float]]:
    """Seconds of every rival in every turn, of CPU by default, after one turn to warm up.

    There are at least `repeats` turns, and more until `seconds` are spent: short runs are noisier.
    """
    runs: dict[str, list[float]] = {name: [] for name in rivals}
    _turn(rivals, 0, clock)
    turn, start = 0, clock()
    while turn < repeats or clock() - start < seconds:
        for name, spent in _turn(rivals, turn, clock).items():
            runs[name].append(spent)
        turn += 1
    return runs


def ratio(runs: Sequence[float], peer: Sequence[float]) -> Ratio:
    """One rival's CPU time over another's, taken in the same turns."""
    return Ratio(min(runs) / min(peer), median(one / other for one, other in zip(runs, peer, strict=True)))


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, its columns flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    print(f"\n{title}")
    for row in (header, *rows):
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)


def _turn(rivals: Rivals, turn: int, clock: Clock) -> dict[str, float]:
    """Each rival once; who comes first changes, for each finds the memory as the one before left it."""
    names = list(rivals)
    start = turn % len(names)
    gc.collect()
    gc.disable()  # or it would collect one rival's garbage on another's time
    try:
        return {name: _time(rivals[name], clock) for name in names[start:] + names[:start]}
    finally:
        gc.enable()


def _time(run: Callable[[], object], clock: Clock) -> float:
    start = clock()
    kept = run()
    spent = clock() - start
    del kept  # what it made is freed outside the clock
    return spent
