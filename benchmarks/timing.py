"""What times of rivals say, and how it is printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """How many times as much CPU time one rival takes as another."""

    least: float  # least time over least time
    median: float  # of the ratios turn by turn, so that a slow minute of the machine meets both

    def __format__(self, spec: str) -> str:
        return f"{self.least:{spec}} / {self.median:{spec}}"


def ratio(runs: Sequence[float], peer: Sequence[float]) -> Ratio:
    """One rival's CPU time over another's, taken in the same turns."""
    return Ratio(min(runs) / min(peer), median(one / other for one, other in zip(runs, peer, strict=True)))


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, its columns flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    print(f"\n{title}")
    for row in (header, *rows):
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)
